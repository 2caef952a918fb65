import { describe, expect, it } from 'vitest';
import { prepareChart } from '../../../src/helm/chart-values.js';
import { loadChart } from '../../../src/helm/chart.js';
import { type RenderChartOptions, renderChart } from '../../../src/helm/render-chart.js';

const files = {
  'Chart.yaml': 'apiVersion: v2\nname: expr\nversion: 0.1.0\nappVersion: "2.5"\n',
  'values.yaml':
    'name: Web App\nport: 8080\nbig: 1000000\nratio: 0.25\non: true\nempty: ""\nlist: [a, b, c]\nnums: [3, 1, 2]\nmap: {x: 1, q: {z: deep}}\nnothing: null\nimage: {registry: quay.io, repository: acme/app, tag: "1.2"}\n',
  'f.txt': 'one\ntwo\n',
  'templates/_h.tpl': '{{- define "e.x" -}}v={{ .v }}{{- end -}}',
};

async function render(template: string, options: RenderChartOptions = {}) {
  const all = Object.entries({ ...files, 'templates/t.yaml': template });
  const chart = await loadChart(new Map(all.map(([name, text]) => [name, Buffer.from(text)])), 'expr');
  const { files: rendered, faulty } = renderChart(prepareChart(chart), options);
  return { text: rendered[0]?.text, faults: faulty.map(({ fault }) => fault) };
}

/** What Helm prints for each: 3.21.4 for the first ones, 3.17 for the others. */
const printed: [template: string, text: string][] = [
  [
    '{{ mergeOverwrite (dict "a" true "b" "x" "c" (dict "d" 1)) (dict "a" false "b" nil "c" (dict)) | toJson }} {{ merge (dict "a" "") (dict "a" nil "z" nil) | toJson }} {{ dig "a" "none" (dict "a" nil) | kindOf }}',
    '{"a":false,"b":null,"c":{"d":1}} {"a":""} invalid',
  ],
  [
    '{{ define "n" }}{{ .none }}{{ end }}{{ if include "n" (dict) }}yes{{ end }} {{ include "n" (dict) | quote }} {{ include "n" (dict) | len }} {{ tpl "{{ .none }}" (dict) | len }}',
    'yes "" 10 0',
  ],
  [
    '{{ upper "Straße" }} {{ lower "ΟΔΟΣ İ" }} {{ title "a-é_b ßx" }} {{ untitle "Ab İC" }} {{ swapcase "aB ß" }} {{ camelcase "_no_https__v1.2_X " }} {{ camelcase "GO-PATH" }}',
    'STRAßE οδοσ i A-É_b ßx ab iC Ab ß _NoHttps_V1.2X  GoPath',
  ],
  [
    '{{ kebabcase "v1.2.3" }} {{ snakecase "HTTP20xOK" }} {{ snakecase "Bld4Floor3rd" }} {{ kebabcase "_a  b$C" }} {{ snakecase "http2xx" }} {{ kebabcase "NoHTTPS" }} {{ snakecase "x漢字y" }}',
    'v1.2.3 http_20x_ok bld4_floor_3rd -a--b-$-c http_2xx no-https x_漢字_y',
  ],
  [
    '{{ wrapWith 4 "-" "abcdefghij kl" }} {{ wrap 4 " abcdefghij kl m" | quote }} {{ wrapWith 3 "" "éab" | quote }} {{ abbrev 6 "ééé" }} {{ abbrevboth 5 10 "1234 5678 9123" }} {{ html nil }} {{ urlquery 1 2 "a" }}',
    'abcd-efgh-ij-kl "abcdefghij\\nkl m" "éa\\nb" ééé ...5678... &lt;no value&gt; 1+2a',
  ],
  [
    '{{ printf "%.0f %.0f %.1f %.2f %.1f" 0.5 2.5 1.25 -2.675 -0.25 }} {{ printf "%.1f %.3g %.2v %G" 1e21 8080.0 123456.0 1e-7 }}',
    '0 2 1.2 -2.67 -0.2 1000000000000000000000.0 8.08e+03 1.2e+05 1E-07',
  ],
  [
    '{{ printf "%08.3f %05s %-05d| %+06.1f %05.3d %.3T %#v" -1.5 "ab" 7 2.0 7 "a" (list nil 1) }}',
    '-001.500 000ab 7    | +002.0   007 str []interface {}{interface {}(nil), 1}',
  ],
  [
    '{{ toToml (dict "a" (list (dict "x" 1 "y" (dict "z" 2.0)) (dict "x" 1.5)) "b" (list 1e21 "a" (dict "k" (list true))) "c.d" (dict "e f" "q\\"\\n\\u0001é" "n" nil "m" (dict "t" (list)))) }}',
    'b = [1e+21, "a", {k = [true]}]\n\n[[a]]\n  x = 1\n  [a.y]\n    z = 2.0\n\n[[a]]\n  x = 1.5\n\n["c.d"]\n  "e f" = "q\\"\\n\\u0001é"\n  ["c.d".m]\n    t = []\n',
  ],
  [
    '{{ duration (mul 60 90) }} {{ duration "-65" }} {{ durationRound "2h10m5s" }} {{ durationRound "24h" }} {{ durationRound "-9000h" }} {{ toDate "2006-01-02" "2024-03-05" | dateModify "-1.5h" }}',
    '1h30m0s -1m5s 2h 24h 1y 2024-03-04 22:30:00 +0000 UTC',
  ],
  [
    '{{ regexFind "[^]]+" "ab]c" }} {{ regexFind "[]a]+" "b]a" }} {{ regexFind "[a[]+" "b[a" }} {{ regexFind "[^[:alpha:]]+" "a1" }} {{ regexReplaceAll "\\\\[x\\\\]" "a[x]" "y" }}',
    'ab ]a [a 1 ay',
  ],
  [
    '{{ $a := dict "x" (dict "y" 1) }}{{ $_ := merge (dict) $a (dict "x" (dict "z" 2)) }}{{ toJson $a }}',
    '{"x":{"y":1,"z":2}}',
  ],
  [
    '{{ $n := now }}{{ ne $n ($n | dateModify "1h") }} {{ ne $n ($n | dateModify "0s") }} {{ dig "image" "tag" "none" .Values.AsMap }}',
    'true false 1.2',
  ],
  [
    '{{ int "0o17" }} {{ int "1_000" }} {{ int "010" }} {{ int "1.0" }} {{ atoi "0x1f" }} {{ int64 1e21 }} {{ toDecimal "-17" }}',
    '15 1000 8 1 0 -9223372036854775808 -15',
  ],
  [
    '{{ addf 2.675 -2.5 }} {{ subf 0.3 0.1 }} {{ mulf 1.5 2.675 }} {{ divf 1 3 }} {{ divf 2 -3 }} {{ float64 "1.2.3" }}',
    '0.175 0.2 4.0125 0.3333333333333333 -0.6666666666666667 0',
  ],
  ['{{ round 123.4567 -1 }} {{ round 2.5 0 }} {{ round -2.4 0 }} {{ round 1.2345 2 0.4 }}', '120 3 -3 1.24'],
  [
    '{{ has 1.0 (list 1 2) }} {{ uniq (list "1" 1 1.0 1) }} {{ without (list 1 1.0) 1 }} {{ deepEqual (dict "a" 1) (dict "a" 1.0) }}',
    'false [1 1 1] [1] false',
  ],
  ['{{ eq nil nil }} {{ eq nil 1 }} {{ ne nil "" }} {{ eq 1 2 1 }}', 'true false true true'],
  [
    '{{ splitn "," 0 "a,b" }} {{ splitn "," 2 "a,b,c" }} {{ sortAlpha nil }} {{ replace "" "-" "ab" }} {{ title "a-b_c d" }}',
    'map[] map[_0:a _1:b,c] [<nil>] -a-b- A-B_c D',
  ],
  [
    '{{ b64dec "v1.20" }} {{ b64dec "YWJj" }} {{ b32dec "x" }} {{ fromYaml "0" }} {{ fromYamlArray "a: 1" }} {{ fromJson "[1]" }}',
    'illegal base64 data at input byte 2 abc illegal base32 data at input byte 0 map[Error:error unmarshaling JSON: while decoding JSON: json: cannot unmarshal number into Go value of type map[string]interface {}] [error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into Go value of type []interface {}] map[Error:json: cannot unmarshal array into Go value of type map[string]interface {}]',
  ],
  [
    '{{ js "<a> & \'b\' = \\"c\\"" }} {{ urlquery "a b&\'c\'" }} {{ (urlParse "x:y").opaque }}',
    '\\u003Ca\\u003E \\u0026 \\\'b\\\' \\u003D \\"c\\" a+b%26%27c%27 y',
  ],
  [
    '{{ regexFindAll "x*" "axb" -1 }} {{ regexReplaceAll "a*" "baac" "-" }} {{ regexMatch "^\\\\pL+$" "é漢" }} {{ regexSplit "\\\\pL" "1a2" -1 }}',
    '[ x ] -b-c- true [1 2]',
  ],
  [
    '{{ printf "%8s|%-5d|%05d|%+v|% x" (list "a" nil) 3 (list 1 2) 7 "ab" }}',
    '[       a <nil>]|3    |[00001 00002]|7|61 62',
  ],
  [
    '{{ printf "%8s %.2f %[3]s %*d" 5.5 10 }} {{ printf "%#v %w" "a" 1 }}',
    '%!s(float64=     5.5) %!f(int=10) %!s(BADINDEX) %!(BADWIDTH)%!d(MISSING) "a" %!w(int=1)',
  ],
  ['{{ slice (list) 3 }}{{ dig "a" "b" "none" (dict "a" (dict "c" 1)) }} {{ dig "a" 5 (dict) }}', 'none 5'],
  [
    '{{ (fromJson "{\\"n\\": 9007199254740993}").n }} {{ typeOf (fromYaml "n: 1").n }}',
    '9.007199254740992e+15 <nil>',
  ],
  ['{{ .Values.name | lower | replace " " "-" }}', 'web-app'],
  ['{{ .Values.port }} {{ .Values.big }} {{ .Values.ratio }}', '8080 1e+06 0.25'],
  [
    '{{ .Values.port | int | add 1 }} {{ add 1 2 3 }} {{ sub 5 3 }} {{ mul 2 3 }} {{ div 7 2 }} {{ mod 7 2 }}',
    '8081 6 2 6 3 1',
  ],
  [
    '{{ printf "%s:%v|%5d|%-5s|%05d|%q|%t|%.2f|%x|%T" "a" 1 42 "b" 7 "q" true 1.5 255 .Values.port }}',
    'a:1|   42|b    |00007|"q"|true|1.50|ff|float64',
  ],
  [
    '{{ printf "%d" .Values.port }} {{ printf "%s" .Values.list }} {{ printf "%v" .Values.map }} {{ print 1 2 "a" "b" 3 }}',
    '%!d(float64=8080) [a b c] map[q:map[z:deep] x:1] 1 2ab3',
  ],
  [
    '{{ .Values.missing }}|{{ .Values.missing | default "d" }}|{{ .Values.nothing | default "n" }}|{{ default "x" .Values.empty }}',
    '|d|n|x',
  ],
  [
    '{{ if and .Values.on (eq .Values.name "Web App") }}yes{{ else }}no{{ end }} {{ if or .Values.empty .Values.missing }}yes{{ else if .Values.on }}elif{{ end }}',
    'no ',
  ],
  [
    '{{ range $i, $e := .Values.list }}{{ $i }}={{ $e }},{{ end }}{{ range $k, $v := .Values.map }}{{ $k }};{{ end }}',
    '0=a,1=b,2=c,q;x;',
  ],
  [
    '{{ range .Values.missing }}x{{ else }}none{{ end }} {{ with .Values.image }}{{ .registry }}/{{ .repository }}:{{ .tag }}{{ end }}',
    'none quay.io/acme/app:1.2',
  ],
  [
    '{{ $x := 1 }}{{ range ($x := list 1 2) }}{{ $x }};{{ end }}{{ range ($x := list) }}{{ end }}{{ $x }}',
    '[1 2];[1 2];1',
  ],
  ['{{ $x := 1 }}{{ range .Values.list }}{{ $x = add $x 1 }}{{ end }}{{ $x }}', '4'],
  [
    '{{ range until 5 }}{{ if eq . 3 }}{{ break }}{{ end }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ . }}{{ end }}',
    '02',
  ],
  ['{{ toYaml .Values.map | nindent 2 }}', '\n  q:\n    z: deep\n  x: 1'],
  [
    '{{ toJson .Values.image }} {{ .Values.list | toJson }} {{ toPrettyJson .Values.nums }}',
    '{"registry":"quay.io","repository":"acme/app","tag":"1.2"} ["a","b","c"] [\n  3,\n  1,\n  2\n]',
  ],
  [
    '{{ .Values.list | join "," }} {{ first .Values.list }} {{ last .Values.list }} {{ rest .Values.list }} {{ initial .Values.list }} {{ has "b" .Values.list }} {{ without .Values.list "b" }}',
    'a,b,c a c [b c] [a b] true [a c]',
  ],
  [
    '{{ dict "a" 1 "b" (list 1 2) | toJson }} {{ (dict "a" (dict "b" "c")).a.b }} {{ get (dict "k" "v") "k" }} {{ hasKey .Values.map "x" }}',
    '{"a":1,"b":[1,2]} c v true',
  ],
  [
    '{{ merge (dict "a" 1) (dict "a" 2 "b" 3) | toJson }} {{ mergeOverwrite (dict "a" 1) (dict "a" 2 "b" 3) | toJson }} {{ dig "q" "z" "def" .Values.map }} {{ dig "r" "z" "def" .Values.map }}',
    '{"a":1,"b":3} {"a":2,"b":3} deep def',
  ],
  [
    '{{ pick .Values.image "tag" | toJson }} {{ omit .Values.image "tag" | toJson }} {{ keys .Values.image | sortAlpha }} {{ values (dict "a" 1) }}',
    '{"tag":"1.2"} {"registry":"quay.io","repository":"acme/app"} [registry repository tag] [1]',
  ],
  [
    '{{ trunc 3 "abcdef" }} {{ trunc -3 "abcdef" }} {{ trimSuffix "-" "a-" }} {{ trimPrefix "v" "v1" }} {{ trimAll "$" "$5$" }} {{ upper "a" }} {{ title "hello world" }} {{ untitle "Hello World" }} {{ repeat 3 "ab" }} {{ substr 1 3 "hello" }} {{ nospace "a b" }} {{ initials "First Try" }} {{ abbrev 5 "hello world" }} {{ contains "el" "hello" }} {{ hasPrefix "he" "hello" }} {{ quote 1 "a" }} {{ squote "b" }} {{ cat "a" 1 "b" }}',
    'abc def a 1 5 A Hello World hello world ababab el ab FT he... true true "1" "a" \'b\' a 1 b',
  ],
  [
    '{{ snakecase "FirstName" }} {{ camelcase "http_server" }} {{ kebabcase "FirstName" }} {{ swapcase "aB" }} {{ plural "one" "many" 2 }} {{ wrap 5 "hello big world" }}',
    'first_name HttpServer first-name Ab many hello\nbig\nworld',
  ],
  [
    '{{ semverCompare ">=1.2.0" "1.3.0" }} {{ semverCompare "^1.2" "v1.9.1" }} {{ semverCompare ">=1.16-0" .Capabilities.KubeVersion.GitVersion }} {{ (semver "1.2.3-rc.1").Major }} {{ (semver "1.2.3").Minor }}',
    'true true true 1 2',
  ],
  [
    '{{ regexMatch "^[a-z]+$" "abc" }} {{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }} {{ regexFind "[0-9]+" "a12b3" }} {{ regexFindAll "[0-9]" "1a2b3" 2 }} {{ regexSplit "z+" "pizza" -1 }} {{ regexReplaceAllLiteral "a" "banana" "$1" }}',
    'true -W-xxW- 12 [1 2] [pi a] b$1n$1n$1',
  ],
  [
    '{{ b64enc "hello" }} {{ b64dec "aGVsbG8=" }} {{ b32enc "hi" }} {{ sha256sum "x" | trunc 8 }} {{ sha1sum "x" }} {{ adler32sum "x" }}',
    'aGVsbG8= hello NBUQ==== 2d711642 11f6ad8ec52a2984abaafd7c3b516503785c2072 7929977',
  ],
  [
    '{{ ternary "a" "b" true }} {{ ternary "a" "b" false }} {{ coalesce "" nil "c" }} {{ empty "" }} {{ empty 0 }} {{ kindOf .Values.list }} {{ typeOf .Values.port }} {{ typeOf 1 }} {{ kindIs "map" .Values.map }}',
    'a b c true true slice float64 int true',
  ],
  [
    '{{ split "." "1.2.3" | toJson }} {{ (split ":" "a:b")._1 }} {{ splitList ":" "a:b" }} {{ splitn ":" 2 "a:b:c" | toJson }}',
    '{"_0":"1","_1":"2","_2":"3"} b [a b] {"_0":"a","_1":"b:c"}',
  ],
  [
    '{{ index .Values.list 1 }} {{ index .Values "map" "x" }} {{ len .Values.list }} {{ len "abc" }} {{ slice .Values.list 1 2 }} {{ not true }} {{ ne 1 2 }} {{ lt 1 2 }} {{ ge 2 2 }} {{ eq 1 2 1 }}',
    'b 1 3 3 [b] false true true true true',
  ],
  [
    '{{ int "12" }} {{ int64 "0x10" }} {{ float64 "1.5" }} {{ atoi "7" }} {{ toString 5 }} {{ toStrings (list 1 2) }} {{ max 1 5 3 }} {{ min 4 2 }} {{ ceil 1.2 }} {{ floor 1.8 }} {{ round 1.2345 2 }} {{ seq 1 3 }} {{ untilStep 3 6 2 }} {{ seq 5 }}',
    '12 16 1.5 7 5 [1 2] 5 2 2 1 1.23 1 2 3 [3 5] 1 2 3 4 5',
  ],
  ['{{ $m := dict "a" 1 }}{{ $_ := set $m "b" 2 }}{{ $_ := unset $m "a" }}{{ $m | toJson }}', '{"b":2}'],
  [
    '{{ base "a/b.txt" }} {{ dir "a/b/c" }} {{ ext "x.tar.gz" }} {{ clean "a//b/../c" }} {{ isAbs "/a" }}',
    'b.txt a/b .gz a/c true',
  ],
  [
    '{{ (fromYaml "a: 1\\nb: [x]").b }} {{ (fromJson "{\\"a\\":{\\"b\\":2}}").a.b }} {{ fromYamlArray "- 1\\n- 2" }} {{ (fromYaml "a: [").Error | empty }}',
    '[x] 2 [1 2] false',
  ],
  [
    '{{ tpl "{{ .Values.name }}-{{ .Chart.Name }}" . }} {{ include "e.x" (dict "v" 3) }} {{ template "e.x" (dict "v" 4) }} {{ .Chart.AppVersion }} {{ .Template.Name }} {{ .Template.BasePath }}',
    'Web App-expr v=3 v=4 2.5 expr/templates/t.yaml expr/templates',
  ],
  [
    'a {{- " b" -}}   c {{/* comment */}} d {{- /* trimmed */ -}}  e {{"\\x41\\u00e9\\n" | trim}} {{`raw \\n`}} {{ \'a\' }} {{ 0x1F }} {{ 1e3 }} {{ -5 }}',
    'a bc  de Aé raw \\n 97 31 1000 -5',
  ],
  [
    '{{ uniq (list 1 2 1) }} {{ compact (list 1 0 "" "a") }} {{ reverse (list 1 2) }} {{ concat (list 1) (list 2) }} {{ append (list 1) 2 }} {{ prepend (list 1) 0 }} {{ chunk 2 (list 1 2 3) }} {{ pluck "a" (dict "a" 1) (dict "a" 2) }}',
    '[1 2] [1 a] [2 1] [1 2] [1 2] [0 1] [[1 2] [3]] [1 2]',
  ],
  [
    '{{ date "2006-01-02" (toDate "2006-01-02" "2024-03-05") }} {{ duration (int64 95) }} {{ htmlDate (toDate "2006-01-02" "2024-03-05") }}',
    '2024-03-05 1m35s 2024-03-05',
  ],
  [
    '{{ (urlParse "https://u:p@host:80/path?q=1#f").host }} {{ urlJoin (dict "scheme" "http" "host" "h" "path" "/p") }} {{ html "<a>" }} {{ urlquery "a b&c" }}',
    'host:80 http://h/p &lt;a&gt; a+b%26c',
  ],
  [
    '{{ lookup "v1" "Pod" "" "" | len }} {{ lookup "v1" "Pod" "" "x" | empty }} {{ $.Values.name }} {{ (list 1 2) }} {{ dict }} {{ list }} {{ true }}',
    '0 true Web App [1 2] map[] [] true',
  ],
  [
    '{{ quote nil "a" }} {{ toString nil }} {{ printf "%v" nil }} {{ print nil }} {{ .Values.nothing | quote }} {{ toYaml .Values.nothing }} {{ toJson nil }} {{ join "," nil }}',
    '"a" <nil> <nil> <nil>  null null ',
  ],
  [
    '{{ and 1 0 2 }} {{ or 0 "" "x" }} {{ and true .Values.on }} {{ 12345678.0 }} {{ 100000.0 }} {{ 0.00001 }} {{ 1.0 }} {{ mulf 1.5 2 }} {{ addf 1 2.5 }} {{ divf 1 3 }}',
    '0 x  1.2345678e+07 100000 1e-05 1 3 3.5 0.3333333333333333',
  ],
  [
    '{{ indent 2 "a\\nb" }} {{ nindent 2 "a" }} {{ replace "a" "b" "aaa" }} {{ trim "  a " }} {{ splitList "," "" }} {{ list "" | toJson }} {{ dict "a" nil | toYaml }}',
    '  a\n  b \n  a bbb a [] [""] a: null',
  ],
  [
    '{{ .Release.Service }} {{ .Capabilities.KubeVersion.Major }} {{ .Capabilities.APIVersions.Has "apps/v1" }} {{ .Capabilities.APIVersions.Has "x/v1" }} {{ .Files.Get "f.txt" }}|{{ range $p, $_ := .Files.Glob "*.txt" }}{{ $p }}{{ end }} {{ (.Files.Glob "*.txt").AsConfig }} {{ .Files.Lines "f.txt" }}',
    'Helm 1 true false one\ntwo\n|f.txt f.txt: |\n  one\n  two [one two]',
  ],
];

describe('helm/template', () => {
  it.each(printed)('evaluates %s as Helm does', async (template, text) => {
    expect(await render(template)).toEqual({ text, faults: [] });
  });

  it.each([
    ['a\n{{ nofunction }}', 'syntax', 'function "nofunction" not defined', 2],
    ['{{ if true }}', 'syntax', 'unexpected EOF', 1],
    ['{{ end }}', 'syntax', 'unexpected {{end}}', 1],
    ['\n\n{{ .Values.list', 'syntax', 'unclosed action', 3],
    ['{{ $x }}', 'syntax', 'undefined variable "$x"', 1],
    ['{{/* a', 'syntax', 'unclosed comment', 1],
    ['{{ break }}', 'syntax', '{{break}} outside {{range}}', 1],
    ['{{ 1 | 2 }}', 'syntax', 'non executable command in pipeline', 1],
    ['{{ env "HOME" }}', 'syntax', 'function "env" not defined', 1],
    ['a\n{{ required "set it" .Values.missing }}', 'refused', 'set it', 2],
    ['{{ fail "no" }}', 'refused', 'no', 1],
    ['\n{{ .Values.missing.deep }}', 'evaluation', 'nil pointer evaluating interface {}.deep', 2],
    ['{{ .Values.name.deep }}', 'evaluation', 'can\u0027t evaluate field deep in type string', 1],
    ['{{ trim 1 }}', 'evaluation', 'trim: wrong type for value; expected string; got int', 1],
    ['{{ include "no.such" . }}', 'evaluation', 'include: no template "no.such"', 1],
    ['{{ index .Values.list 7 }}', 'evaluation', 'index: index out of range: 7', 1],
    ['{{ div 1 0 }}', 'evaluation', 'div: division by zero', 1],
    ['{{ divf 1 0 }}', 'evaluation', 'divf: decimal division by 0', 1],
    [
      '{{ if gt .Values.port 1 }}{{ end }}',
      'evaluation',
      'gt: incompatible types for comparison: float64 and int',
      1,
    ],
    ['{{ eq 1 "1" }}', 'evaluation', 'eq: incompatible types for comparison: int and string', 1],
    ['{{ until .Values.port }}', 'evaluation', 'until: wrong type for value; expected int; got float64', 1],
    ['{{ first "abc" }}', 'evaluation', 'first: type string is not a list', 1],
    ['{{ rest .Values.nothing }}', 'evaluation', 'rest: type <nil> is not a list', 1],
    ['{{ repeat -1 "a" }}', 'evaluation', 'repeat: negative count', 1],
    ['{{ substr 3 2 "abcd" }}', 'evaluation', 'substr: slice bounds out of range', 1],
    ['{{ index .Values.list 1.0 }}', 'evaluation', 'index: cannot index slice/array with type float64', 1],
    ['{{ dig "q" "z" "y" 1 .Values.map }}', 'evaluation', 'dig: a string is no map', 1],
    ['{{ fromToml "" }}', 'unsupported', 'function fromToml: TOML is not supported', 1],
    ['{{ toToml (dict "a" (list nil)) }}', 'evaluation', 'toToml: a list contains nil', 1],
  ])('names the fault and the line of %j', async (template, kind, message, line) => {
    const { faults } = await render(template);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatchObject({ kind, message, line, template: 'expr/templates/t.yaml' });
  });

  it('prints a time beyond the range of dates as the constant time', async () => {
    expect(await render('{{ htmlDate (int64 1e300) }} {{ dateModify "99999999999h" now }}')).toEqual({
      text: '1970-01-01 1970-01-01 00:00:00 +0000 UTC',
      faults: [],
    });
  });

  it.each([
    ['endless inclusion', '{{ define "l" }}{{ include "l" . }}{{ end }}{{ include "l" . }}'],
    [
      'endless evaluation of text',
      '{{ $d := dict }}{{ $_ := set $d "t" "{{ tpl .t . }}" }}{{ tpl $d.t $d }}',
    ],
    [
      'nested loops',
      '{{ range until 9999 }}{{ range until 9999 }}{{ range until 9999 }}x{{ end }}{{ end }}{{ end }}',
    ],
    ['a long list', '{{ until 2000000000 }}'],
    ['a long text', '{{ repeat 2000000000 "x" }}'],
    [
      'a text that doubles',
      '{{ $s := "xxxxxxxxxxxxxxxx" }}{{ range until 60 }}{{ $s = print $s $s }}{{ end }}',
    ],
    ['a list that doubles', '{{ $l := list 1 2 }}{{ range until 60 }}{{ $l = concat $l $l }}{{ end }}'],
    ['a value that contains itself', '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}'],
    ['a merge of a value that contains itself', '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ merge $d $d }}'],
    [
      'a merge of a value that shares its parts',
      '{{ $d := dict }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ merge $d $d }}',
    ],
    [
      'a value that shares its parts',
      '{{ $d := dict }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ $d }}',
    ],
    ['a replacement that grows', '{{ $s := repeat 4000 "a" }}{{ replace "a" (repeat 40000 "b") $s }}'],
    [
      'values that are large together, and differ',
      '{{ $s := repeat 1000000 "a" }}{{ $l := list }}{{ range $i := until 600 }}{{ $l = append $l (upper (print $i $s)) }}{{ end }}',
    ],
    ['a split with many parts', '{{ $d := split "a" (repeat 16000000 "a") }}'],
    ['a split into letters', '{{ $d := splitn "" 5 (repeat 16000000 "a") }}'],
    ['a list of many parts', '{{ $d := splitList "a" (repeat 16000000 "a") }}'],
    ['many numbers', '{{ $l := list }}{{ range until 1000 }}{{ $l = append $l (until 99999) }}{{ end }}'],
    ['many matches', '{{ $l := regexFindAll "a" (repeat 16000000 "a") -1 }}'],
    ['many parts of a pattern', '{{ $l := regexSplit "a" (repeat 16000000 "a") -1 }}'],
    ['many replacements', '{{ $s := regexReplaceAll "a" (repeat 16000000 "a") "b" }}'],
    ['deep parentheses', `{{ ${'('.repeat(5000)}1${')'.repeat(5000)} }}`],
    ['deep blocks', '{{ if true }}'.repeat(5000) + '{{ end }}'.repeat(5000)],
    [
      'a wide column',
      '{{ range until 5000 }}{{ printf "%9999d" 1 }}{{ end }}{{ range until 5000 }}{{ printf "%9999d" 1 }}{{ end }}',
    ],
  ])('ends %s', async (_what, template) => {
    const limits = { maxSteps: 100_000, maxMade: 32 * 1024 * 1024 };
    const { faults } = await render(template, { limits });
    expect(faults.map(({ kind }) => kind)).toEqual(['limit']);
  });

  it('ends values that are large together, by default', async () => {
    const template =
      '{{ $d := dict }}{{ range $i := until 600 }}{{ $_ := set $d (toString $i) (repeat 16000000 "a") }}{{ end }}';
    expect((await render(template)).faults.map(({ kind }) => kind)).toEqual(['limit']);
  });

  it('aborts a regular expression that takes too long', async () => {
    const template = '{{ regexMatch "^(a+)+$" (print (repeat 40 "a") "b") }}';
    const { faults } = await render(template, { maxMilliseconds: 200 });
    expect(faults.map(({ message }) => message)).toEqual(['rendering timed out after 200 ms']);
  });

  it('keeps keys of any name apart from object prototypes', async () => {
    const template =
      '{{ $d := dict "__proto__" 1 "constructor" 2 }}{{ $d | toJson }}{{ .Values.constructor }}{{ .Values.toString }}{{ hasKey .Values "__proto__" }}';
    expect(await render(template)).toEqual({ text: '{"__proto__":1,"constructor":2}false', faults: [] });
  });
});
