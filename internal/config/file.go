package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/go-json-experiment/json"
)

// prefix begins the names of all environment variables of the program.
const prefix = "POSTERN_"

// maxSettings is how large a configuration file may be, in bytes.
const maxSettings = 1 << 20

// ReadFile reads a configuration file: one JSON object, or TOML without tables. Its names
// are those of the flags in known; a name may have "_" for "-". Each value is returned as
// a flag would give it. A name that is not known is an error, which names the nearest one.
func ReadFile(path string, known []string) (map[string]string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("read POSTERN_CONFIG_FILE: %w", err)
	}
	values, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	settings := make(map[string]string, len(values))
	var errs []error
	for name, value := range values {
		flag := strings.ReplaceAll(name, "_", "-")
		_, twice := settings[flag]
		switch {
		case !slices.Contains(known, flag):
			errs = append(errs, fmt.Errorf("%s: there is no setting %q; the nearest one is %q", path, name,
				Nearest(flag, known)))
		case twice:
			errs = append(errs, fmt.Errorf("%s: %q is set twice", path, flag))
		default:
			if settings[flag], err = setting(value); err != nil {
				errs = append(errs, fmt.Errorf("%s: %q %w", path, name, err))
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return settings, errors.Join(errs...)
}

// decode reads JSON, which begins with a brace, or TOML, which does not. The errors of
// both decoders name a line or a place, and no value.
func decode(text []byte) (values map[string]any, err error) {
	if len(text) > maxSettings {
		return nil, fmt.Errorf("it is larger than %d bytes", maxSettings)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return values, json.Unmarshal(text, &values)
	}
	err = toml.Unmarshal(text, &values)
	if bad, ok := errors.AsType[toml.ParseError](err); ok {
		err = fmt.Errorf("line %d is neither JSON nor TOML", bad.Position.Line)
	}
	return values, err
}

var errValue = errors.New("must be a string, a number, true or false, or a list of these")

// setting returns a value of the file as a flag would give it. Lists are joined by commas.
func setting(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			text, err := setting(one)
			if _, nested := one.([]any); nested || err != nil {
				return "", errValue
			}
			parts[i] = text
		}
		return strings.Join(parts, ","), nil
	}
	return "", errValue
}

// harness matches variables that are not settings: those of Postern's own tests, and those
// that Kubernetes sets in every container for a service named "postern".
var harness = regexp.MustCompile(`^POSTERN_(TEST_\w+|FAILPOINT|SABOTAGE|SCREENSHOTS|SERVICE_HOST|SERVICE_PORT(_\w+)?|` +
	`PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)=|^POSTERN_PORT=(tcp|udp|sctp)://`)

// CheckVariables returns an error for each variable of environ whose name begins with
// POSTERN_ and is not known. It names the nearest one, and no value.
func CheckVariables(environ, known []string) error {
	var errs []error
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, prefix) && !slices.Contains(known, name) && !harness.MatchString(entry) {
			errs = append(errs, fmt.Errorf("there is no setting %s; the nearest one is %s", name, Nearest(name, known)))
		}
	}
	return errors.Join(errs...)
}

// Variables returns the environment.
func Variables() []string { return os.Environ() }

// IsSet reports whether one of some variables is set.
func IsSet(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, set := os.LookupEnv(name)
		return set
	})
}

// Nearest returns the name that needs the fewest changes to become the given one. Case,
// "-", "_" and the prefix of variables do not count.
func Nearest(name string, known []string) (nearest string) {
	least := -1
	for _, one := range slices.Sorted(slices.Values(known)) {
		if n := distance(plain(name), plain(one)); least < 0 || n < least {
			least, nearest = n, one
		}
	}
	return nearest
}

func plain(name string) string {
	name = strings.ToUpper(strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_"))
	return strings.TrimPrefix(name, prefix)
}

// distance counts the characters to insert or remove. To replace one counts as both, so
// that a name that is only too short is nearer than another one of the same length.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j]+1, row[j+1]+1)
			if a[i] == b[j] {
				next = min(next, diagonal)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
