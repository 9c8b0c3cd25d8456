package kv

import "fmt"

// Check tests the whole pool against the sequences that hold of it: for tests
// and for the build tag "invariants".
func (p *Pool) Check(seqs []*Seq) error {
	refs := make([]int32, len(p.slots))
	for _, s := range seqs {
		if s.shared < 0 || s.shared > len(s.blocks) {
			return fmt.Errorf("%d of %d blocks are shared", s.shared, len(s.blocks))
		}
		parent := root
		for i, b := range s.blocks {
			if b < 0 || int(b) >= len(p.slots) {
				return fmt.Errorf("there is no block %d among %d", b, len(p.slots))
			}
			refs[b]++
			n := &p.slots[b]
			switch {
			case n.in != (i < s.shared):
				return fmt.Errorf("block %d is number %d of a sequence with %d shared ones; in the tree: %v", b, i, s.shared, n.in)
			case n.in && n.parent != parent:
				return fmt.Errorf("block %d hangs below %d in the tree and follows %d in a sequence", b, n.parent, parent)
			case !n.in && n.refs != 1:
				return fmt.Errorf("the private block %d is held %d times", b, n.refs)
			}
			parent = b
		}
	}
	used, nodes := 0, 0
	for b := range p.slots {
		n := &p.slots[b]
		if n.refs != refs[b] {
			return fmt.Errorf("block %d is held %d times and counted as held %d times", b, refs[b], n.refs)
		}
		if n.refs > 0 {
			used++
		}
		if n.in {
			nodes++
		}
		if n.listed != (n.in && n.refs == 0) {
			return fmt.Errorf("block %d is cached: %v; in the tree: %v, held %d times", b, n.listed, n.in, n.refs)
		}
	}
	if used != p.used || len(p.free)+p.cached+p.used != len(p.slots) {
		return fmt.Errorf("%d blocks free, %d cached, %d used, counted as %d, of %d", len(p.free), p.cached, used, p.used, len(p.slots))
	}
	seen := make([]bool, len(p.slots))
	for _, b := range p.free {
		if seen[b] || p.slots[b].in || p.slots[b].refs > 0 {
			return fmt.Errorf("block %d is free and taken, or free twice", b)
		}
		seen[b] = true
	}
	return p.checkTree(nodes)
}

func (p *Pool) checkTree(nodes int) error {
	kids := make([]int32, len(p.slots))
	found := 0
	for i, head := range p.tree.heads {
		for b := head; b != none; b = p.slots[b].next {
			n := &p.slots[b]
			if found++; found > nodes {
				return fmt.Errorf("the hash table holds more than the %d nodes of the tree", nodes)
			}
			if !n.in || int(n.hash&uint64(len(p.tree.heads)-1)) != i || p.hash(n.parent, p.idsOf(b)) != n.hash {
				return fmt.Errorf("block %d lies in a wrong chain of the hash table", b)
			}
			if p.child(n.parent, n.hash, p.idsOf(b)) != b {
				return fmt.Errorf("block %d is in the tree twice", b)
			}
			if n.parent == root {
				continue
			}
			if up := &p.slots[n.parent]; !up.in || up.refs < n.refs {
				return fmt.Errorf("block %d is held %d times, its parent %d %d times", b, n.refs, n.parent, up.refs)
			}
			kids[n.parent]++
		}
	}
	for b := range p.slots {
		if p.slots[b].kids != kids[b] {
			return fmt.Errorf("block %d has %d children, counted as %d", b, kids[b], p.slots[b].kids)
		}
	}
	if found != nodes {
		return fmt.Errorf("%d of %d nodes of the tree can be found", found, nodes)
	}
	listed, before := 0, none
	gone := make([]int32, len(p.slots))
	for b := p.tree.oldest; b != none; before, b = b, p.slots[b].newer {
		n := &p.slots[b]
		if listed++; listed > p.cached || !n.listed || n.older != before {
			return fmt.Errorf("the list of cached blocks is broken at %d", b)
		}
		if gone[b] != n.kids {
			return fmt.Errorf("block %d would be reclaimed before its children", b)
		}
		if n.parent != root {
			gone[n.parent]++
		}
	}
	if listed != p.cached || p.tree.newest != before {
		return fmt.Errorf("%d blocks are listed as cached, counted as %d", listed, p.cached)
	}
	return nil
}
