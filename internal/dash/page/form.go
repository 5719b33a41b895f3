package page

import "context"

// Choice is a value of a form and its text.
type Choice struct {
	Value, Label string
}

// Field is a form field as shown after the form was refused.
type Field struct {
	Value string
	Error string // what is wrong with it, as a sentence; "": nothing
}

// fault is a line of the summary of a refused form.
type fault struct {
	id, text string
}

// faults returns those that have a text.
func faults(all ...fault) []fault {
	var list []fault
	for _, f := range all {
		if f.text != "" {
			list = append(list, f)
		}
	}
	return list
}

// first reports whether the field is the first faulty one, which gets the focus.
func first(list []fault, id string) bool { return len(list) > 0 && list[0].id == id }

type hereKey struct{}

// In adds to the context the workspace of a page, for its forms.
func In(ctx context.Context, workspace string) context.Context {
	return context.WithValue(ctx, hereKey{}, workspace)
}

// hereIn is the workspace of a page; "" if it has none.
func hereIn(ctx context.Context) string {
	id, _ := ctx.Value(hereKey{}).(string)
	return id
}
