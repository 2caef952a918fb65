import type { SelectionPick } from '../../responses.js';
import { decode } from '../route.js';

/**
 * Parses picks of a route: `PACKAGE`, `PACKAGE/CHANNEL`, `PACKAGE/CHANNEL/MIN/MAX` or
 * `PACKAGE/CHANNEL///VERSION,VERSION`, with encoded components; omits invalid ones.
 */
export function parsePicks(texts: readonly string[]): SelectionPick[] {
  return texts.flatMap((text) => {
    const [name = '', channel = '', minVersion = '', maxVersion = '', list = ''] = text.split('/');
    const versions = list.split(',').filter(Boolean).map(decode);
    if (name === '') return [];
    return {
      package: decode(name),
      ...(channel !== '' && { channel: decode(channel) }),
      ...(minVersion !== '' && { minVersion: decode(minVersion) }),
      ...(maxVersion !== '' && { maxVersion: decode(maxVersion) }),
      ...(versions.length > 0 && { versions }),
    };
  });
}

/** Formats a pick for a route. */
export function formatPick(pick: SelectionPick): string {
  const { package: name, channel = '', minVersion = '', maxVersion = '', versions = [] } = pick;
  const parts = [name, channel, minVersion, maxVersion].map(encodeURIComponent);
  return [...parts, versions.map(encodeURIComponent).join(',')].join('/').replace(/\/+$/, '');
}

/** Parses default channels of a route, each `PACKAGE/CHANNEL`. */
export function parseDefaults(texts: readonly string[]): { package: string; channel: string }[] {
  return parsePicks(texts).flatMap(({ package: name, channel }) =>
    channel === undefined ? [] : { package: name, channel },
  );
}

/** Replaces the picks of a package, in place. */
export function replacePicks(
  picks: readonly SelectionPick[],
  name: string,
  replacements: readonly SelectionPick[],
): SelectionPick[] {
  const index = picks.findIndex((pick) => pick.package === name);
  const position = index < 0 ? picks.length : index;
  const isOther = (pick: SelectionPick): boolean => pick.package !== name;
  return [
    ...picks.slice(0, position).filter(isOther),
    ...replacements,
    ...picks.slice(position).filter(isOther),
  ];
}
