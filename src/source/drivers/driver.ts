import type { ExtractedLayers } from '../../archive/layers.js';
import type { AllowedSources, Source } from '../source-types.js';

/** The state of a place, kept between polls and across restarts. */
export interface PlaceState {
  /** Identifies the content: states of a place with the same id have the same content. */
  id: string;
  /** Pinned reference for messages. */
  ref: string;
  /** ETag, date or file version that the next poll compares. */
  validator?: string | undefined;
}

/** A place in a resolved state; `close` removes its downloads. */
export interface ResolvedPlace {
  state: PlaceState;
  /** True if the id alone determines the content, independent of time and user. */
  isImmutable: boolean;
  /** Opens the catalog or bundle in this state. Throws OpmateError. */
  open(allowed: AllowedSources): Promise<Source>;
  /**
   * Writes the files under `roots` to `destination`, which must not exist; undefined for a catalog without files.
   * Throws OpmateError.
   */
  unpack?: Unpack | undefined;
  /** Reports whether the place is still in this state, if its files can change while they are read. */
  confirm?(): Promise<boolean>;
  close(): Promise<void>;
}

export type Unpack = (destination: string, roots: readonly string[]) => Promise<UnpackedPlace>;

export interface UnpackedPlace {
  /** Base directory of `roots`: `destination`, or a directory in it. */
  directory: string;
  /** Errors of files that could not be unpacked, by path. */
  problems: ExtractedLayers['problems'];
}

/** Does nothing; the `close` of places without downloads. */
export const nothingToClose = (): Promise<void> => Promise.resolve();
