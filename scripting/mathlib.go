package scripting

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

func ofOne(f func(float64) float64) lua.LGFunction {
	return func(l *lua.LState) int {
		l.Push(lua.LNumber(f(checkNumber(l, 1))))
		return 1
	}
}

func ofTwo(f func(x, y float64) float64) lua.LGFunction {
	return func(l *lua.LState) int {
		l.Push(lua.LNumber(f(checkNumber(l, 1), checkNumber(l, 2))))
		return 1
	}
}

func fold(f func(x, y lua.LNumber) lua.LNumber) lua.LGFunction {
	return func(l *lua.LState) int {
		x := lua.LNumber(checkNumber(l, 1))
		for i := 2; i <= l.GetTop(); i++ {
			x = f(x, lua.LNumber(checkNumber(l, i)))
		}
		l.Push(x)
		return 1
	}
}

// mathLib is Lua's math without random and randomseed.
var mathLib = lib{
	{"abs", ofOne(math.Abs)},
	{"acos", ofOne(math.Acos)},
	{"asin", ofOne(math.Asin)},
	{"atan", ofOne(math.Atan)},
	{"atan2", ofTwo(math.Atan2)},
	{"ceil", ofOne(math.Ceil)},
	{"cos", ofOne(math.Cos)},
	{"cosh", ofOne(math.Cosh)},
	{"deg", ofOne(func(x float64) float64 { return x * 180 / math.Pi })},
	{"exp", ofOne(math.Exp)},
	{"floor", ofOne(math.Floor)},
	{"fmod", ofTwo(math.Mod)},
	{"frexp", func(l *lua.LState) int {
		frac, exp := math.Frexp(checkNumber(l, 1))
		l.Push(lua.LNumber(frac))
		l.Push(lua.LNumber(exp))
		return 2
	}},
	{"ldexp", ofTwo(func(x, y float64) float64 { return math.Ldexp(x, clampInt(y)) })},
	{"log", ofOne(math.Log)},
	{"log10", ofOne(math.Log10)},
	{"max", fold(func(x, y lua.LNumber) lua.LNumber {
		if y > x {
			return y
		}
		return x
	})},
	{"min", fold(func(x, y lua.LNumber) lua.LNumber {
		if y < x {
			return y
		}
		return x
	})},
	{"modf", func(l *lua.LState) int {
		whole, frac := math.Modf(checkNumber(l, 1))
		l.Push(lua.LNumber(whole))
		l.Push(lua.LNumber(frac))
		return 2
	}},
	{"pow", ofTwo(math.Pow)},
	{"rad", ofOne(func(x float64) float64 { return x * math.Pi / 180 })},
	{"sin", ofOne(math.Sin)},
	{"sinh", ofOne(math.Sinh)},
	{"sqrt", ofOne(math.Sqrt)},
	{"tan", ofOne(math.Tan)},
	{"tanh", ofOne(math.Tanh)},
}
