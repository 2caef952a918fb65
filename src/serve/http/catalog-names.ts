const label = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';
const subdomain = new RegExp(`^${label}(?:\\.${label})*$`);
const maxLength = 253;

/** What is wrong with a name of a catalog, which is a DNS subdomain (RFC 1123); undefined when nothing is. */
export function catalogNameFault(name: string): string | undefined {
  if (name.length > maxLength) return `must be no more than ${maxLength} characters`;
  if (subdomain.test(name)) return undefined;
  return (
    'must be a DNS-1123 subdomain: lower case letters, digits, "-" and ".", ' +
    'each part beginning and ending with a letter or digit'
  );
}
