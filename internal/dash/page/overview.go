package page

// OverviewView is the first page.
type OverviewView struct {
	Steps []Step // of getting started; nil: the list is not shown
	Tiles []Tile
}

// Step is something to do to get started.
type Step struct {
	Title string
	Text  string
	Href  string // where it is done; "": nowhere here
	Done  bool
}

// Tile is one figure.
type Tile struct {
	Label, Value string
	Note         string // what the figure means or what it is out of; "": nothing
}

func (v OverviewView) done() (n int) {
	for _, s := range v.Steps {
		if s.Done {
			n++
		}
	}
	return n
}
