package blob

import (
	"os"
	"sync/atomic"
)

// CountSyncs counts how often the directory waits for the disk from now on.
func (d *Directory) CountSyncs() *atomic.Int64 {
	var n atomic.Int64
	sync := d.sync
	d.sync = func(f *os.File) error {
		n.Add(1)
		return sync(f)
	}
	return &n
}
