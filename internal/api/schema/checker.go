package schema

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// Checker checks bodies against the schemas of one registry. It knows the part
// of JSON Schema that [Checker.Prepare] accepts. Many goroutines may use it once
// all schemas are prepared.
type Checker struct {
	registry huma.Registry
	patterns map[string]*regexp.Regexp
	prepared map[*huma.Schema]bool
}

// NewChecker returns a Checker for schemas that refer to the registry.
func NewChecker(registry huma.Registry) *Checker {
	return &Checker{registry: registry, patterns: map[string]*regexp.Regexp{}, prepared: map[*huma.Schema]bool{}}
}

// Prepare compiles what a check against s needs. It fails when s uses a keyword
// that a check would not honour, so that no schema promises more than is checked.
func (c *Checker) Prepare(s *huma.Schema) error {
	s = c.resolve(s)
	if s == nil || c.prepared[s] {
		return nil
	}
	c.prepared[s] = true
	if word := unknownKeyword(s); word != "" {
		return fmt.Errorf("a body's schema has %s, which no check honours", word)
	}
	if s.Pattern != "" {
		re, err := regexp.Compile(s.Pattern)
		if err != nil {
			return fmt.Errorf("the pattern of a body's schema: %w", err)
		}
		c.patterns[s.Pattern] = re
	}
	for _, part := range c.parts(s) {
		if err := c.Prepare(part); err != nil {
			return err
		}
	}
	return c.tellsApart(s)
}

var (
	errNoMark   = errors.New("a body's schema has a form without a field of its own, and no discriminator")
	errOptional = errors.New("a body's schema has a form that does not require the discriminator")
	errUsual    = errors.New("a body's schema has a form without a discriminator that allows one")
)

// tellsApart refuses a choice between forms that cannot be told apart: each must require the
// discriminator or, if there is no discriminator, have a mark. The usual form must not allow
// the discriminator.
func (c *Checker) tellsApart(s *huma.Schema) error {
	typed, usual := c.typed(s)
	if usual != nil && (usual.AdditionalProperties != false || usual.Properties[typed.Discriminator.PropertyName] != nil) {
		return errUsual
	}
	for i, form := range s.OneOf {
		if typed == nil && c.mark(s, i) == "" {
			return errNoMark
		}
		if typed == s && !slices.Contains(c.resolve(form).Required, s.Discriminator.PropertyName) {
			return errOptional
		}
	}
	return nil
}

// parts are the schemas within s.
func (c *Checker) parts(s *huma.Schema) []*huma.Schema {
	list := append([]*huma.Schema{s.Items}, s.OneOf...)
	for _, p := range s.Properties {
		list = append(list, p)
	}
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
		list = append(list, values)
	}
	return list
}

// unknownKeyword names a keyword of s that no check honours, or "".
func unknownKeyword(s *huma.Schema) string { //nolint:cyclop // a table
	switch {
	case s.MultipleOf != nil:
		return "multipleOf"
	case s.UniqueItems:
		return "uniqueItems"
	case s.MinProperties != nil || s.MaxProperties != nil:
		return "minProperties or maxProperties"
	case len(s.DependentRequired) > 0:
		return "dependentRequired"
	case len(s.AnyOf) > 0 || len(s.AllOf) > 0 || s.Not != nil:
		return "anyOf, allOf or not"
	case len(s.OneOf) > 0 && s.Discriminator != nil && len(s.Discriminator.Mapping) != len(s.OneOf):
		return "oneOf with a discriminator that does not map every choice"
	case len(s.Enum) > 0 && s.Type != huma.TypeString && s.Type != huma.TypeInteger:
		return "an enum of type " + s.Type
	case s.ContentEncoding != "" && s.ContentEncoding != base64Encoding:
		return "the encoding " + s.ContentEncoding
	case s.Type == huma.TypeString && s.Format != "" && formats[s.Format].valid == nil:
		return "the format " + s.Format
	case !slices.Contains(types(), s.Type):
		return "the type " + s.Type
	}
	return ""
}

// types are the types of values; "" is that of a choice.
func types() []string {
	return []string{
		"", huma.TypeObject, huma.TypeArray, huma.TypeString, huma.TypeInteger, huma.TypeNumber,
		huma.TypeBoolean,
	}
}

// resolve follows references.
func (c *Checker) resolve(s *huma.Schema) *huma.Schema {
	for s != nil && s.Ref != "" {
		s = c.registry.SchemaFromRef(s.Ref)
	}
	return s
}
