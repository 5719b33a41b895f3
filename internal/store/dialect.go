package store

import "fmt"

// inList is the set of texts in the JSON array bound as parameter n. PostgreSQL
// will take json_array_elements_text here.
func inList(n int) string { return fmt.Sprintf("(SELECT value FROM json_each($%d))", n) }
