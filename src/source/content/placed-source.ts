import { UsageError, redact } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { parsePlace } from '../parse-place.js';
import type { PlacedSource } from './content-types.js';

/**
 * Reads `DESTINATION=SOURCE` as it is written on the command line; relative paths are counted from the directory.
 * Throws OpmateError.
 */
export async function parsePlacedSource(text: string, workingDirectory: string): Promise<PlacedSource> {
  const position = text.indexOf('=');
  if (position <= 0) {
    throw new UsageError('expected DESTINATION=SOURCE', {
      subject: quoteGo(redact(text)),
      hint: 'use the form manifests=git+https://git.example/team/repo.git#main:deploy',
    });
  }
  const source = text.slice(position + 1);
  return {
    name: redact(source),
    source: await parsePlace(source, { purpose: 'content', workingDirectory }),
    destination: text.slice(0, position),
  };
}
