"""Writes cases.json: what Jinja2, set up as transformers' apply_chat_template
does, makes of each template in cases.txt (separated by lines of ----) for each
conversation. Needs Python with jinja2 3.1; run it in this folder."""
import json
import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment


def fail(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = fail

conversations = [
    [["user", "Hi"]],
    [["system", "  Be brief.\n"], ["user", "What is 2+2?\nAnd 日本?"], ["assistant", "<think>\nTwo.\n</think>\n\n4 "], ["user", ""]],
    [["assistant", "x"], ["user", "\"q\" 'r' \\ <b> & \t\u2028 🙂"]],
]
cases = []
for source in open("cases.txt", encoding="utf-8").read().split("\n----\n"):
    for messages in conversations:
        for prompt in (True, False):
            values = dict(messages=[dict(role=r, content=c) for r, c in messages], add_generation_prompt=prompt,
                          bos_token="<s>", eos_token="</s>")
            try:
                want, error = env.from_string(source).render(**values), ""
            except Exception as e:
                want, error = "", str(e) or type(e).__name__
            cases.append(dict(source=source, messages=messages, prompt=prompt, want=want, error=error))
with open("cases.json", "w", encoding="utf-8") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]\n")
