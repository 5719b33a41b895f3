package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"postern/internal/config"

	"github.com/alecthomas/kong"
)

// settingsFile is the flag that names the configuration file.
type settingsFile string

// BeforeResolve reads the file. It is called by kong, also if a variable names the file.
func (settingsFile) BeforeResolve(app *kong.Kong, ctx *kong.Context, trace *kong.Path) error {
	path, _ := ctx.FlagValue(trace.Flag).(settingsFile)
	if path == "" {
		return nil
	}
	flags, _ := settings(app.Model.Node)
	values, err := config.ReadFile(string(path), flags)
	if err != nil {
		return err
	}
	ctx.AddResolver(fromFile(values))
	return nil
}

// fromFile resolves flags that are neither given nor set by a variable.
func fromFile(values map[string]string) kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		value, ok := values[flag.Name]
		if !ok || len(flag.Envs) == 0 || config.IsSet(flag.Envs) {
			return nil, nil //nolint:nilnil // kong's form of "not set here"
		}
		return value, nil
	})
}

// settings lists the flags and the variables of all settings: the flags that have a
// variable. The file cannot name another file.
func settings(node *kong.Node) (flags, variables []string) {
	for _, f := range node.Flags {
		variables = append(variables, f.Envs...)
		if len(f.Envs) > 0 && f.Name != "config-file" {
			flags = append(flags, f.Name)
		}
	}
	for _, child := range node.Children {
		f, v := settings(child)
		flags, variables = append(flags, f...), append(variables, v...)
	}
	slices.Sort(flags)
	slices.Sort(variables)
	return slices.Compact(flags), slices.Compact(variables)
}

// switches reads settings that are on or off: --sandbox, --sandbox=off and --sandbox off.
type switches struct{}

// IsBool lets a switch stand without a value.
func (switches) IsBool() bool { return true }

// Decode reads the value, if there is one.
func (switches) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	text := "on"
	if next := ctx.Scan.Peek(); next.Type == kong.FlagValueToken || isSwitch(next) {
		text = fmt.Sprint(ctx.Scan.Pop().Value)
	}
	var s config.Switch
	if err := s.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("--%s %w", ctx.Value.Name, err)
	}
	target.Set(reflect.ValueOf(s))
	return nil
}

// isSwitch reports whether an argument after a switch is its value.
func isSwitch(t kong.Token) bool {
	text, _ := t.Value.(string)
	return t.Type == kong.UntypedToken && slices.Contains([]string{"on", "off", "true", "false"}, text)
}

// explain adds the nearest flag to the error of an unknown one.
func explain(err error) error {
	const unknown = "unknown flag "
	bad, is := errors.AsType[*kong.ParseError](err)
	text, _, _ := strings.Cut(err.Error(), ",") // kong names only flags that are very near
	name, ok := strings.CutPrefix(text, unknown)
	if !is || !ok || bad.Context == nil {
		return err
	}
	var flags []string
	for _, group := range flagsOf(bad.Context) {
		for _, f := range group {
			flags = append(flags, "--"+f.Name)
		}
	}
	return fmt.Errorf("there is no flag %s; the nearest one is %s", name, config.Nearest(name, flags))
}

func flagsOf(ctx *kong.Context) [][]*kong.Flag {
	if node := ctx.Selected(); node != nil {
		return node.AllFlags(true)
	}
	return ctx.Model.AllFlags(true)
}
