package main

import (
	"fmt"

	"tokenrouter/runtime/ladder"
)

// openKeeper opens the file of --keep and gives the runs that it has of the grid.
func openKeeper(name string, about *aboutJSON, g ladder.Grid) (*keeper, []ladder.Cell, error) {
	wanted := map[string]bool{}
	for _, s := range g.Order() {
		wanted[s.String()] = true
	}
	k, cells, err := openKept(name, "ladder", about, func(c *ladder.Cell) bool {
		return wanted[ladder.Setting{Rung: ladder.Rung{Name: c.Rung}, N: c.N, Seed: c.Seed}.String()]
	})
	if err != nil {
		return nil, nil, fmt.Errorf("--keep: %w", err)
	}
	return k, cells, nil
}

// add keeps a run.
func (k *keeper) add(c *ladder.Cell) error {
	if err := k.append(c); err != nil {
		return fmt.Errorf("--keep: %w", err)
	}
	return nil
}
