package spec

import (
	"maps"
	"slices"
)

// Notes lists the operations that have a text.
func Notes() []string {
	list := notes()
	maps.DeleteFunc(list, func(_ string, n note) bool { return n.text == "" })
	return slices.Sorted(maps.Keys(list))
}
