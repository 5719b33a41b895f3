// Nothing here is Go of ours: this file keeps the Go command out of what npm
// puts below.
module postern/tools

go 1.26.0
