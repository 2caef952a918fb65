/**
 * Name formats of Kubernetes, with its error texts; no errors for a valid name. (Source: apimachinery,
 * api/validate/content.)
 */

const dnsLabel = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const dnsSubdomain = `${dnsLabel}(\\.${dnsLabel})*`;
const dns1035Label = '[a-z]([-a-z0-9]*[a-z0-9])?';
const labelKey = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';

/** A pattern, its error text, and its match without backtracking. */
interface Rule {
  matches: (text: string) => boolean;
  message: string;
}

function rule(
  matches: (text: string) => boolean,
  pattern: string,
  problem: string,
  examples: string[],
): Rule {
  const listed = examples.map((example) => `'${example}', `).join(' or ');
  return { matches, message: `${problem} (e.g. ${listed}regex used for validation is '${pattern}')` };
}

function isSubdomain(text: string): boolean {
  return text.split('.').every((label) => /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(label));
}

function isKey(text: string): boolean {
  return /^[-A-Za-z0-9_.]+$/.test(text) && /^[A-Za-z0-9]/.test(text) && /[A-Za-z0-9]$/.test(text);
}

const subdomainRule = rule(
  isSubdomain,
  dnsSubdomain,
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must " +
    'start and end with an alphanumeric character',
  ['example.com'],
);
const dns1035Rule = rule(
  (text) => /^[a-z](?:[-a-z0-9]*[a-z0-9])?$/.test(text),
  dns1035Label,
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic " +
    'character, and end with an alphanumeric character',
  ['my-name', 'abc-123'],
);
const dns1123LabelRule = rule(
  (text) => label.test(text),
  dnsLabel,
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end " +
    'with an alphanumeric character',
  ['my-name', '123-abc'],
);
const keyProblem =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const keyRule = rule(isKey, labelKey, keyProblem, ['MyName', 'my.name', '123-abc']);
const valueRule = rule(
  (text) => text === '' || isKey(text),
  `(${labelKey})?`,
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start " +
    'and end with an alphanumeric character',
  ['MyValue', 'my_value', '12345'],
);

function getFaults(text: string, maxLength: number, { matches, message }: Rule, unit: string): string[] {
  const faults: string[] = [];
  if (Buffer.byteLength(text) > maxLength) faults.push(`must be no more than ${maxLength} ${unit}`);
  if (!matches(text)) faults.push(message);
  return faults;
}

/** Returns the errors of a text as a DNS subdomain (RFC 1123), the format of most names. */
export function subdomainFaults(text: string): string[] {
  return getFaults(text, 253, subdomainRule, 'characters');
}

/** Returns the errors of a text as a DNS label (RFC 1123), the format of package names. */
export function dns1123LabelFaults(text: string): string[] {
  const isDotted = text.includes('.') && isSubdomain(text);
  const message = isDotted ? 'must not contain dots' : dns1123LabelRule.message;
  return getFaults(text, 63, { ...dns1123LabelRule, message }, 'characters');
}

/** Returns the errors of a text as a DNS label (RFC 1035), the format of names of resources and API versions. */
export function dns1035LabelFaults(text: string): string[] {
  return getFaults(text, 63, dns1035Rule, 'characters');
}

/** Returns the errors of a text as the value of a label. */
export function labelValueFaults(text: string): string[] {
  return getFaults(text, 63, valueRule, 'bytes');
}

/** Returns the errors of a text as the key of a label or, in lower case, of an annotation. */
export function labelKeyFaults(text: string): string[] {
  const parts = text.split('/');
  if (parts.length > 2) {
    return [
      `a valid label key ${keyRule.message} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const faults: string[] = [];
  const prefix = parts.length === 2 ? (parts[0] as string) : undefined;
  const name = parts.at(-1) as string;
  if (prefix === '') faults.push('prefix part must be non-empty');
  else if (prefix !== undefined)
    faults.push(...getFaults(prefix, 253, subdomainRule, 'bytes').map((fault) => `prefix part ${fault}`));
  if (name === '') faults.push('name part must be non-empty');
  else if (Buffer.byteLength(name) > 63) faults.push('name part must be no more than 63 bytes');
  if (!isKey(name)) faults.push(`name part ${keyRule.message}`);
  return faults;
}

const labelPattern = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';
const subdomain = new RegExp(`^${labelPattern}(?:\\.${labelPattern})*$`);
const label = new RegExp(`^${labelPattern}$`);

/** Returns the problem of a text as a DNS subdomain (RFC 1123), in brief; undefined if valid. */
export function subdomainFault(text: string): string | undefined {
  if (text.length > 253) return 'longer than 253 characters';
  return subdomain.test(text)
    ? undefined
    : 'not a DNS-1123 subdomain: lower case letters, digits, - and ., with a letter or digit at both ends';
}

/** Returns the problem of a text as a DNS label (RFC 1123), the format of namespaces, in brief; undefined if valid. */
export function labelFault(text: string): string | undefined {
  if (text.length > 63) return 'longer than 63 characters';
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
