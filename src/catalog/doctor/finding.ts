import type { BlobOrigin } from '../../model/facts.js';
import { BlobPlaces } from '../blob-places.js';
import { type CheckName, type Severity, checks } from './checks.js';

/** Something in a catalog that is wrong, or valid and hardly meant. */
export interface Finding {
  check: CheckName;
  severity: Severity;
  /** What is so, on one line, without the names of package, channel and bundle that stand beside it. */
  message: string;
  package?: string | undefined;
  channel?: string | undefined;
  bundle?: string | undefined;
  /** The file, as the user named the catalog. */
  file?: string | undefined;
  /** From 1. */
  line?: number | undefined;
  /** What to change. */
  hint?: string | undefined;
}

/** A finding whose line is not counted yet. */
export interface PlacedFinding {
  finding: Finding;
  origin?: BlobOrigin | undefined;
  path?: readonly (string | number)[] | undefined;
  /** Lines from the first one of the blob to the one that is meant, where they are counted already. */
  down?: number | undefined;
}

/** What a finding is about. */
export type Subject = Pick<Finding, 'package' | 'channel' | 'bundle'> &
  Pick<PlacedFinding, 'origin' | 'path'>;

/** Takes findings of the checks that were chosen, in the packages that were. */
export class FindingList {
  readonly found: PlacedFinding[] = [];
  readonly #chosen: ReadonlySet<CheckName>;
  readonly #packages: ReadonlySet<string> | undefined;
  #blob: { origin: BlobOrigin; places: BlobPlaces } | undefined;

  constructor(chosen: ReadonlySet<CheckName>, packages: ReadonlySet<string> | undefined) {
    this.#chosen = chosen;
    this.#packages = packages;
  }

  /** Tells which blob is being looked at: places in it are found in its text, and it need not be read again. */
  lookAt(blob: { origin: BlobOrigin; text?: string | undefined } | undefined): void {
    this.#blob =
      blob?.text === undefined
        ? undefined
        : { origin: blob.origin, places: new BlobPlaces(blob.text, blob.origin.syntax) };
  }

  /** Whether findings of any of these checks are wanted. */
  wants(...names: CheckName[]): boolean {
    return names.some((name) => this.#chosen.has(name));
  }

  /** Whether findings about a package are wanted. */
  wantsPackage(name: string): boolean {
    return this.#packages?.has(name) !== false;
  }

  /** Adds a finding with the severity of its check, or with another one. */
  add(check: CheckName, subject: Subject, message: string, hint: string, severity?: Severity): void {
    if (!this.#chosen.has(check) || !this.wantsPackage(subject.package ?? '')) return;
    const { origin, path = [], ...names } = subject;
    const finding = { check, severity: severity ?? checks[check].severity, message, hint, ...names };
    if (origin !== undefined && this.#blob?.origin === origin) {
      this.found.push({ finding, origin, down: this.#blob.places.linesDownTo(path) });
    } else this.found.push({ finding, origin, path });
  }
}
