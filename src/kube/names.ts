/**
 * Name formats of Kubernetes, with its error texts; no errors for a valid name. (Source: apimachinery,
 * api/validate/content.)
 */

/** Maximum length of a DNS label, and so of the names of namespaces and of the values of labels. */
export const maxLabelLength = 63;

/** Maximum bytes of the keys and values of annotations. (Source: Kubernetes' TotalAnnotationSizeLimitB.) */
export const maxAnnotationBytes = 256 * 1024;

const dnsLabel = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const dns1035Label = '[a-z]([-a-z0-9]*[a-z0-9])?';
const labelKey = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';

const label = new RegExp(`^${dnsLabel}$`);
const olderLabel = new RegExp(`^${dns1035Label}$`);

/** Matches without backtracking over dots. */
function isSubdomain(text: string): boolean {
  return text.split('.').every((part) => label.test(part));
}

function isKey(text: string): boolean {
  return /^[-A-Za-z0-9_.]+$/.test(text) && /^[A-Za-z0-9]/.test(text) && /[A-Za-z0-9]$/.test(text);
}

/** Returns the message about a text that does not match. */
function describe(problem: string, pattern: string, ...examples: string[]): string {
  const listed = examples.map((example) => `'${example}', `).join(' or ');
  return `${problem} (e.g. ${listed}regex used for validation is '${pattern}')`;
}

const subdomainMessage = describe(
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must " +
    'start and end with an alphanumeric character',
  `${dnsLabel}(\\.${dnsLabel})*`,
  'example.com',
);
const dns1035Message = describe(
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic " +
    'character, and end with an alphanumeric character',
  dns1035Label,
  'my-name',
  'abc-123',
);
const labelMessage = describe(
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end " +
    'with an alphanumeric character',
  dnsLabel,
  'my-name',
  '123-abc',
);
const keyMessage = describe(
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  labelKey,
  'MyName',
  'my.name',
  '123-abc',
);
const valueMessage = describe(
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start " +
    'and end with an alphanumeric character',
  `(${labelKey})?`,
  'MyValue',
  'my_value',
  '12345',
);

function getFaults(
  text: string,
  isMatch: boolean,
  message: string,
  max: number,
  unit = 'characters',
): string[] {
  const isLong = Buffer.byteLength(text) > max;
  return [...(isLong ? [`must be no more than ${max} ${unit}`] : []), ...(isMatch ? [] : [message])];
}

/** Returns the errors of a text as a DNS subdomain (RFC 1123), the format of most names. */
export function subdomainFaults(text: string): string[] {
  return getFaults(text, isSubdomain(text), subdomainMessage, 253);
}

/** Returns the errors of a text as a DNS label (RFC 1123), the format of package names. */
export function dns1123LabelFaults(text: string): string[] {
  const isDotted = text.includes('.') && isSubdomain(text);
  return getFaults(text, label.test(text), isDotted ? 'must not contain dots' : labelMessage, maxLabelLength);
}

/** Returns the errors of a text as a DNS label (RFC 1035), the format of names of resources and API versions. */
export function dns1035LabelFaults(text: string): string[] {
  return getFaults(text, olderLabel.test(text), dns1035Message, maxLabelLength);
}

/** Returns the errors of a text as the value of a label. */
export function labelValueFaults(text: string): string[] {
  return getFaults(text, text === '' || isKey(text), valueMessage, maxLabelLength, 'bytes');
}

/** Returns the errors of a text as the key of a label or, in lower case, of an annotation. */
export function labelKeyFaults(text: string): string[] {
  const parts = text.split('/');
  if (parts.length > 2) {
    return [
      `a valid label key ${keyMessage} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const faults: string[] = [];
  const [prefix] = parts.slice(0, -1);
  const name = parts.at(-1) as string;
  if (prefix === '') faults.push('prefix part must be non-empty');
  else if (prefix !== undefined) {
    const wrong = getFaults(prefix, isSubdomain(prefix), subdomainMessage, 253, 'bytes');
    faults.push(...wrong.map((fault) => `prefix part ${fault}`));
  }
  if (name === '') faults.push('name part must be non-empty');
  else if (Buffer.byteLength(name) > maxLabelLength) faults.push('name part must be no more than 63 bytes');
  if (!isKey(name)) faults.push(`name part ${keyMessage}`);
  return faults;
}

/** Returns the problem of a text as a DNS subdomain (RFC 1123), in brief; undefined if valid. */
export function subdomainFault(text: string): string | undefined {
  if (text.length > 253) return 'longer than 253 characters';
  return isSubdomain(text)
    ? undefined
    : 'not a DNS-1123 subdomain: lower case letters, digits, - and ., with a letter or digit at both ends';
}

/** Returns the problem of a text as a DNS label (RFC 1123), the format of namespaces, in brief; undefined if valid. */
export function labelFault(text: string): string | undefined {
  if (text.length > maxLabelLength) return 'longer than 63 characters';
  return label.test(text)
    ? undefined
    : 'not a DNS-1123 label: lower case letters, digits and -, with a letter or digit at both ends';
}

/** Kinds whose names only have to fit into a URL. */
const rightsKinds: ReadonlySet<string> = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
]);

/** Returns the problem of a name that clusters reject for this kind; undefined if valid. (Source: Kubernetes.) */
export function objectNameFault(kind: string, name: string): string | undefined {
  if (rightsKinds.has(kind)) {
    return name === '.' || name === '..' || /[/%]/.test(name) ? 'not one that fits into a path' : undefined;
  }
  return kind === 'Service' ? labelFault(name) : subdomainFault(name);
}
