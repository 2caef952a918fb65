/** Prefix of the name of an entry that hides the name after it in lower layers. (Source: OCI image specification.) */
export const whiteoutPrefix = '.wh.';

/** Name of an entry that hides all that lower layers have in its directory. */
export const opaqueMarker = '.wh..wh..opq';

/** Returns the path of the entry that hides a path of lower layers. */
export function toWhiteout(path: string): string {
  const slash = path.lastIndexOf('/') + 1;
  return path.slice(0, slash) + whiteoutPrefix + path.slice(slash);
}

/**
 * Returns the path of the entry that hides the content of a directory of lower layers. Unlike a whiteout of the
 * directory, all tools support it in one layer with new files.
 */
export function toOpaqueMarker(directory: string): string {
  return `${directory}/${opaqueMarker}`;
}
