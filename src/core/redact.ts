/**
 * Removes secrets where foreign text enters: `redactForeign` from what servers, programs and libraries say, `redactUrls`
 * from URLs and references. Text that opmate formats is not searched for words: `dex-auth:v1` is a name. Every pattern
 * runs in linear time: repetition is bounded or cannot start within its own match.
 */

const mask = '***';

/** Names of secrets in any spelling: `db_password`, `dbPassword`, `PASSWD`. */
const passwordNames = 'pass(?:word|wd|phrase|code)s?';
/** Names of secrets that are field or file names too: `pullSecret: not found` is a message. */
const secretNames =
  '(?:secret|token|credentials?|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|encryption[_-]?key|pwd)' +
  '(?:[_-]?(?:access[_-]?)?(?:key|id|value|string))?';
const authNames = '(?<![a-z])(?:identity)?auth(?![a-z])';
const secretName = `(?:${passwordNames}|${secretNames}|${authNames})`;

/** A quoted value with escapes, or text up to the next blank or delimiter. */
const value = String.raw`(?:\\"[^"\\]*(?:\\[^"][^"\\]*)*(?:\\")?|"[^"\\]*(?:\\.[^"\\]*)*"?|'[^'\r\n]*'?|[^\s"'&,;}\])]+)`;
/** Words after `subject:` that start a problem rather than a value. */
const problem =
  '(?!(?:no such|not |expected |unknown |missing(?:\\s|$)|must |is |are |has |have |holds |lacks |there |needs |cannot |' +
  'could |does |was |were |invalid |duplicate |unsupported |unavailable|permission |already |neither |wrong ))';

const assigned = new RegExp(`(${secretName}["']?[ \\t]*(?:=>?|:=)[ \\t]*)(?!\\s)${value}`, 'gi');
const quotedKey = new RegExp(`(${secretName}\\\\?["'][ \\t]*:\\s*)${problem}(?!\\s)${value}`, 'gi');
/** No name in a path, and one with a prefix only before a blank: `ns/secret:v1` and `dex-auth:v1` are images. */
const labeled = new RegExp(
  `((?<!/[\\w.-]{0,80})(?:${passwordNames}:[ \\t]*|(?<![\\w.-])(?:${secretNames}|${authNames}):[ \\t]*|` +
    `(?<![a-z0-9])(?:${secretNames}|${authNames}):[ \\t]+))${problem}(?!\\s)${value}`,
  'gi',
);
/** Flags with their value; an upper-case value is the placeholder of a hint. */
const flag = new RegExp(
  `(--[a-z-]{0,30}(?:${passwordNames}|token|api-key)[ \\t]+)(?!-|[A-Z_]+\\b|<)${value}`,
  'g',
);

/** `Authorization` and cookies, whose values contain blanks and end at a quote or the end of the line. */
const header =
  /((?<!\/[\w.-]{0,80})(?:\b(?:proxy-)?authorization["']?[ \t]*[:=][ \t]*["']?|\b(?:set-)?cookie:[ \t]*))(?:(basic|bearer|digest|negotiate|token|aws4-hmac-sha256)[ \t]+)?[^\s"'][^\r\n"']*/gi;

const schemeValue = /\b(bearer|basic)\s+([A-Za-z0-9._~+/=-]{6,})/gi;

/** Parameters of URLs: those of signed URLs, and named secrets. */
const secretParameter = new RegExp(
  String.raw`([?&](?:X-(?:Amz|Goog)-[A-Za-z-]{1,40}|sig|signature|se|sp|code|state|Expires|Key-Pair-Id|Policy|` +
    `[a-z_-]{0,30}${secretName})=)[^&\\s"']+`,
  'gi',
);

/** Tokens with a known form: JSON web tokens and those of GitHub, GitLab, npm, Slack and AWS. */
const knownToken =
  /(?<![\w-])(?:eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|npm_[A-Za-z0-9]{30,}|xox[abprs]-[\w-]{10,}|A[KS]IA[0-9A-Z]{16}(?!\w))/g;

/** A URL that was normalized as a path: `https:/user:password@host`. */
const userInPath = /(?<![\w+.-])([a-z][a-z0-9+.-]{1,20}:\/)[^\s/'"@:]{1,200}:[^\s/'"@]{1,200}@/gi;

const privateKey = /(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[^-]*/g;

/** Quick test: text that no pattern matches, as most text is, fails it. */
const suspicious =
  /:\/|[?&]|pass|secret|token|credential|key|pwd|auth|cookie|bearer|basic|-----BEGIN|eyJ|gh[opsur]_|github_pat_|glpat-|npm_|xox|A[KS]IA/i;

/**
 * Removes credentials from foreign text: user information in URLs, `Authorization` values, bearer and identity tokens,
 * passwords and other named secrets, private keys, secret parameters of URLs.
 */
export function redactForeign(text: string): string {
  if (!suspicious.test(text)) return text;
  return redactUrls(text)
    .replace(userInPath, `$1${mask}@`)
    .replace(privateKey, `$1${mask}`)
    .replace(schemeValue, (match, scheme: string, credentials: string) =>
      isWordAfterBasic(scheme, credentials) ? match : `${scheme} ${mask}`,
    )
    .replace(header, (_match, name: string, scheme: string | undefined) =>
      scheme === undefined ? `${name}${mask}` : `${name}${scheme} ${mask}`,
    )
    .replace(flag, `$1${mask}`)
    .replace(quotedKey, (_match, name: string) => `${name}"${mask}"`)
    .replace(assigned, `$1${mask}`)
    .replace(labeled, `$1${mask}`)
    .replace(knownToken, mask);
}

/**
 * Removes user information and secret parameters from the URLs of a text, such as `user:password@` and `?sig=`. Other
 * text is unchanged, so messages of opmate can pass it. A user without a password stays in ssh URLs.
 */
export function redactUrls(text: string): string {
  if (!text.includes('://') && !/[?&]/.test(text)) return text;
  return withoutUserInformation(text).replace(secretParameter, `$1${mask}`);
}

/** Whole names of fields, headers and flags with a secret as value; `pullSecret` and `secretName` name one. */
const secretField = new RegExp(
  `(?:${passwordNames}|${authNames}|(?:client|shared|app)[_-]?secret|secret[_-]?(?:access[_-]?)?key|token|` +
    'api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|encryption[_-]?key|authorization|cookie)$',
  'i',
);

/** Reports whether the value of a field with this name is a secret, which messages must not quote. */
export function isSecretName(name: string): boolean {
  return secretField.test(name);
}

/**
 * Returns a JSON value with the secrets of its fields masked: named scalars, and the data of Kubernetes Secrets. The
 * depth of the value must be limited, as that of parsed documents is.
 */
export function withoutSecretFields<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item: unknown) => withoutSecretFields(item)) as T;
  if (typeof value !== 'object' || value === null) return value;
  const { kind } = value as { kind?: unknown };
  const entries = Object.entries(value).map(([key, item]: [string, unknown]) => {
    const isData = kind === 'Secret' && (key === 'data' || key === 'stringData');
    const isSecret = isData || (isSecretName(key) && typeof item !== 'object');
    return [key, isSecret ? mask : withoutSecretFields(item)] as const;
  });
  return Object.fromEntries(entries) as T;
}

/**
 * Reports whether text after `basic` is a word or flag, as in `basic template`: real credentials are base64 of text
 * with a colon.
 */
function isWordAfterBasic(scheme: string, credentials: string): boolean {
  if (scheme.toLowerCase() !== 'basic') return false;
  if (credentials.startsWith('--')) return true;
  if (!/^[a-z]+$/.test(credentials)) return false;
  return !Buffer.from(credentials, 'base64').includes(':');
}

/**
 * Masks `user:password@` in all URLs. An unencoded password may contain `@`, `/`, `?` and `#`, so the last `@` before
 * the path ends it, or of the whole word if no `host:port` precedes the path.
 */
function withoutUserInformation(text: string): string {
  if (!text.includes('://')) return text;
  const parts = text.split('://');
  for (let i = 1; i < parts.length; i++) {
    const scheme = /[a-z][a-z0-9+.-]*$/i.exec((parts[i - 1] as string).slice(-31))?.[0];
    if (scheme !== undefined) parts[i] = withoutUser(parts[i] as string, scheme.toLowerCase());
  }
  return parts.join('://');
}

/** Masks the user information after `scheme://`, up to the next URL of the text. */
function withoutUser(rest: string, scheme: string): string {
  // Placeholders of hints stay.
  if (/^user:password@/i.test(rest)) return rest;
  const end = rest.search(/\s/);
  const word = end < 0 ? rest : rest.slice(0, end);
  const path = word.search(/[/?#]/);
  const authority = path < 0 ? word : word.slice(0, path);
  const inAuthority = authority.lastIndexOf('@');
  const hasPort = /^(?:\[[^\]]*\]|[^:]*):\d*$/.test(authority) || !authority.includes(':');
  const position = inAuthority >= 0 || hasPort ? inAuthority : word.lastIndexOf('@');
  if (position < 0 || /^sha\d{3}:/.test(rest.slice(position + 1))) return rest;
  const isUserOnly = scheme.endsWith('ssh') && !rest.slice(0, position).includes(':');
  return isUserOnly ? rest : `${mask}@${rest.slice(position + 1)}`;
}
