import type { ExtractedLayers } from '../../archive/layers.js';
import type { AllowedSources, Source } from '../source-types.js';

/** A state that a place was seen in; kept from one look to the next, and over restarts. */
export interface PlaceState {
  /** Two states of one place with the same id have the same content. */
  id: string;
  /** The place, pinned to this state, as it is shown. */
  ref: string;
  /** What the next look compares with. */
  validator?: string | undefined;
}

/** A place in one state, as its driver has found it. `close` removes what was downloaded for it. */
export interface ResolvedPlace {
  state: PlaceState;
  /** Whether the id alone says what the content is, for everyone and for ever. */
  isImmutable: boolean;
  /** Opens the catalog or bundle in this state. Throws OpmateError. */
  open(allowed: AllowedSources): Promise<Source>;
  /**
   * Writes what the place has under `roots` below `destination`, which must not be there yet; undefined for a place
   * that has a catalog, but no files. Throws OpmateError.
   */
  unpack?: Unpack | undefined;
  /** Whether what was read is of this state, where it could have changed under the reader. */
  confirm?(): Promise<boolean>;
  close(): Promise<void>;
}

export type Unpack = (destination: string, roots: readonly string[]) => Promise<UnpackedPlace>;

export interface UnpackedPlace {
  /** Where the files are that `roots` are counted from: `destination`, or a directory in it. */
  directory: string;
  /** What could not be unpacked, by path. */
  problems: ExtractedLayers['problems'];
}

/** Closes nothing: for places of which nothing is downloaded before it is opened. */
export const nothingToClose = (): Promise<void> => Promise.resolve();
