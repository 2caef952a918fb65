import type { PickRequest } from '../../answers.js';

/** Reads a pick as an address has it: `PACKAGE`, `PACKAGE/CHANNEL`, each part encoded, with bounds behind. */
function parsePick(text: string): PickRequest {
  const [name = '', channel = '', minVersion = '', maxVersion = ''] = text.split('/').map(decodeURIComponent);
  return {
    package: name,
    ...(channel !== '' && { channel }),
    ...(minVersion !== '' && { minVersion }),
    ...(maxVersion !== '' && { maxVersion }),
  };
}

/** A pick as an address has it. */
export function formatPick({
  package: name,
  channel = '',
  minVersion = '',
  maxVersion = '',
}: PickRequest): string {
  return [name, channel, minVersion, maxVersion].map(encodeURIComponent).join('/').replace(/\/+$/, '');
}

/** Picks of an address; what is no pick is left out. */
export function parsePicks(texts: readonly string[]): PickRequest[] {
  return texts.flatMap((text) => {
    try {
      const pick = parsePick(text);
      return pick.package === '' ? [] : [pick];
    } catch {
      return [];
    }
  });
}

/** The picks with those of one package replaced; in the order of packages. */
export function replacePicks(
  picks: readonly PickRequest[],
  name: string,
  own: readonly PickRequest[],
): PickRequest[] {
  const at = picks.findIndex((pick) => pick.package === name);
  const others = picks.filter((pick) => pick.package !== name);
  const before = at < 0 ? others.length : picks.slice(0, at).filter((pick) => pick.package !== name).length;
  return [...others.slice(0, before), ...own, ...others.slice(before)];
}
