package main

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

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
		return err
	}
	target.Set(reflect.ValueOf(s))
	return nil
}

// isSwitch reports whether an argument after a switch is its value.
func isSwitch(t kong.Token) bool {
	text, _ := t.Value.(string)
	return t.Type == kong.UntypedToken && slices.Contains([]string{"on", "off", "true", "false"}, text)
}

// networks reads a network such as 10.0.0.0/8, or a single address.
func networks(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("network", &text); err != nil {
		return err
	}
	prefix, err := netip.ParsePrefix(text)
	if addr, bad := netip.ParseAddr(text); bad == nil {
		prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	if err != nil {
		return fmt.Errorf("%q is neither a network such as 10.0.0.0/8 nor an address", text)
	}
	target.Set(reflect.ValueOf(prefix))
	return nil
}

// durations reads a duration such as 5s.
func durations(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 5s, 2m or 1h", text)
	}
	target.Set(reflect.ValueOf(d))
	return nil
}

// The errors of kong about values.
var (
	badValue  = regexp.MustCompile(`^--([a-z-]+): (.*?)(?: \(from envar ([A-Z_]+)=.*)?$`)
	badChoice = regexp.MustCompile(`^--([a-z-]+) must be one of (.*) but got "(.*)"$`)
)

// explain says which setting is wrong, as the user gave it, and names the nearest valid one.
func explain(err error, args []string) error {
	bad, is := errors.AsType[*kong.ParseError](err)
	if !is {
		return err
	}
	if m := badChoice.FindStringSubmatch(err.Error()); m != nil {
		choices := strings.Split(strings.ReplaceAll(m[2], `"`, ""), ",")
		return fmt.Errorf("%s: %q is not one of %s; the nearest one is %s", given(bad.Context, m[1], args), m[3],
			strings.Join(choices, ", "), config.Nearest(m[3], choices))
	}
	if m := badValue.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s: %s", given(bad.Context, m[1], args), m[2])
	}
	return explainUnknown(bad)
}

// given names a setting as the user gave it: as a flag, a variable, or a name in the file.
func given(ctx *kong.Context, flag string, args []string) string {
	isFlag := func(arg string) bool { return arg == "--"+flag || strings.HasPrefix(arg, "--"+flag+"=") }
	if ctx == nil || slices.ContainsFunc(args, isFlag) {
		return "--" + flag
	}
	for _, group := range flagsOf(ctx) {
		for _, f := range group {
			if f.Name == flag && config.IsSet(f.Envs) {
				return f.Envs[0]
			}
		}
	}
	return flag + " in the configuration file"
}

// explainUnknown adds the nearest flag to the error of an unknown one.
func explainUnknown(bad *kong.ParseError) error {
	const unknown = "unknown flag "
	text, _, _ := strings.Cut(bad.Error(), ",") // kong names only flags that are very near
	name, ok := strings.CutPrefix(text, unknown)
	if !ok || bad.Context == nil {
		return bad
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
