import { list } from '../command/flags.js';
import { encodeData } from '../reports/encode-data.js';
import { catalogForms } from '../../api/open-catalog.js';

/** Sentence of `--help` about the value of `--catalog`. */
export const referenceForms = `REF of --catalog is a ${catalogForms}.`;

/** Flag for the channels of upgrades. */
export const channelFlags = {
  channel: list('name', 'use only these channels (default: all)', { group: 'Selection' }),
};

/** Splits `NAME` or `NAME@VERSION`. */
export function splitInstalled(text: string): { name: string; version: string | undefined } {
  const position = text.lastIndexOf('@');
  if (position < 0) return { name: text, version: undefined };
  return { name: text.slice(0, position), version: text.slice(position + 1) };
}

/** Encodes data as JSON or YAML. */
export function getData(value: object, output: 'json' | 'yaml'): string {
  return encodeData(JSON.parse(JSON.stringify(value)) as object, output);
}
