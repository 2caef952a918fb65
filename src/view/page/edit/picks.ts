import type { SelectionPick } from '../../answers.js';

/**
 * Reads picks of an address: `PACKAGE`, `PACKAGE/CHANNEL`, `PACKAGE/CHANNEL/MIN/MAX` or
 * `PACKAGE/CHANNEL///VERSION,VERSION`, each part encoded; what is no pick is left out.
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

/** Writes a pick as an address has it. */
export function formatPick(pick: SelectionPick): string {
  const { package: name, channel = '', minVersion = '', maxVersion = '', versions = [] } = pick;
  const parts = [name, channel, minVersion, maxVersion].map(encodeURIComponent);
  return [...parts, versions.map(encodeURIComponent).join(',')].join('/').replace(/\/+$/, '');
}

/** Reads default channels of an address, each `PACKAGE/CHANNEL`. */
export function parseDefaults(texts: readonly string[]): { package: string; channel: string }[] {
  return parsePicks(texts).flatMap(({ package: name, channel }) =>
    channel === undefined ? [] : { package: name, channel },
  );
}

/** The picks with those of one package replaced; in the order of packages. */
export function replacePicks(
  picks: readonly SelectionPick[],
  name: string,
  own: readonly SelectionPick[],
): SelectionPick[] {
  const index = picks.findIndex((pick) => pick.package === name);
  const others = picks.filter((pick) => pick.package !== name);
  const before =
    index < 0 ? others.length : picks.slice(0, index).filter((pick) => pick.package !== name).length;
  return [...others.slice(0, before), ...own, ...others.slice(before)];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
