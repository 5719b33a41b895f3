package page

import "context"

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
