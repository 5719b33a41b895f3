package page

import "context"

// Choice is a value of a form and its text.
type Choice struct {
	Value, Label string
}

// Field is what a form shows again of a field after it was refused.
type Field struct {
	Value string
	Error string // what is wrong with it, as a sentence; "": nothing
}

// fault is a line of the summary of a refused form.
type fault struct {
	id, text string
}

// faults lists those that have a text.
func faults(all ...fault) []fault {
	var list []fault
	for _, f := range all {
		if f.text != "" {
			list = append(list, f)
		}
	}
	return list
}

// first tells whether the field is the first that is wrong: it gets the focus.
func first(list []fault, id string) bool { return len(list) > 0 && list[0].id == id }

type hereKey struct{}

// In tells forms which workspace their page is about.
func In(ctx context.Context, workspace string) context.Context {
	return context.WithValue(ctx, hereKey{}, workspace)
}

// hereIn is the workspace that a page is about; "" when it is about none.
func hereIn(ctx context.Context) string {
	id, _ := ctx.Value(hereKey{}).(string)
	return id
}
