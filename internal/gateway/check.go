package gateway

import (
	"postern/internal/postern"
)

func tooLarge(format string, args ...any) error {
	return postern.Errorf(postern.PayloadTooLarge, format, args...)
}

func checkMetadata(m map[string]string) error {
	if len(m) > maxMetadata {
		return tooLarge("metadata may have at most %d fields", maxMetadata)
	}
	for k, v := range m {
		if len(k) > maxMetadataBytes || len(v) > maxMetadataBytes {
			return tooLarge("a metadata name or value may be at most %d bytes long", maxMetadataBytes)
		}
	}
	return nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
