package media

import "time"

const (
	// MaxThumbnail bounds a thumbnail, in bytes. It is encrypted for each device of each
	// recipient and stays in memory for repeated requests. Apps show it until they have the
	// picture.
	MaxThumbnail  = 3000
	thumbnailSide = 100 // pixels of the longer side

	maxImage   = 100_000_000 // pixels of a picture that is sent as an image
	maxDecoded = 25_000_000  // pixels that are decoded at a time, at most 8 bytes each
	maxSide    = 20_000      // of a picture that is decoded; scaling needs 3 kB per line

	maxMetadata = 1 << 20 // bytes at the start of a JPEG file that are searched for its orientation

	stickerSide   = 512       // pixels of a sticker
	maxSticker    = 100_000   // bytes of a converted sticker, as the vendor asks of its packs
	maxAnySticker = 1_000_000 // bytes of a sticker that is sent as it is
	stickerFile   = "image/webp"

	avatarSide    = 640 // pixels of the picture of a group, as the vendor's apps make it
	avatarQuality = 85

	maxVoice     = 2 * time.Hour
	voiceBitrate = 24_000                                         // bits per second
	maxVoiceFile = int64(maxVoice/time.Second) * voiceBitrate / 4 // bytes; twice of what is expected
	waveformSize = 64
	waveformRate = 8000 // samples per second that are looked at
	silence      = 33   // of 32,768, below which nothing is heard: -60 dB

	maxVideo      = 4096 * 2304 // pixels of a frame that ffmpeg decodes
	maxVideoSide  = 16_384      // pixels of a side that is believed
	lastPacket    = time.Second // how long the last packet of a file may take
	maxAllocation = 256 << 20   // bytes that ffmpeg allocates at once
	maxReport     = 1 << 20     // bytes that a program may print
	maxComplaint  = 2 << 10     // bytes of its errors that are kept

	defaultProcesses = 2
	defaultTimeout   = time.Minute

	maxName    = 200  // bytes of a file's name; file systems take 255
	headLength = 3072 // bytes from which a type is read
)
