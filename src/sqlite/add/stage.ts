import { Spool } from '../../catalog/spool.js';
import type { BundleManifests, BundleRecord } from '../schema/bundle-record.js';

/** A bundle that is ready to be added; its manifests wait outside of memory. */
export interface StagedBundle {
  record: BundleRecord;
  /** How messages name where it came from. */
  reference: string;
  /** Digest of the image it was read from; none for a directory. */
  digest?: string | undefined;
  manifests(): Promise<BundleManifests>;
}

/** Bundles that were pulled and read, and wait for the transaction that adds them all. */
export class Stage {
  readonly #spool: Spool;
  readonly bundles: StagedBundle[] = [];

  /** `temporaryDirectory` is where manifests wait that do not fit in memory. */
  constructor(temporaryDirectory: string) {
    this.#spool = new Spool(temporaryDirectory);
  }

  async add(
    record: BundleRecord,
    manifests: BundleManifests,
    reference: string,
    digest?: string,
  ): Promise<void> {
    const csv = await this.#spool.append(manifests.csv);
    const objects = await this.#spool.append(manifests.objects);
    this.bundles.push({
      record: detached(record),
      reference,
      digest,
      manifests: async () => ({
        csv: await this.#spool.read(csv),
        objects: await this.#spool.read(objects),
      }),
    });
  }

  close(): Promise<void> {
    return this.#spool.close();
  }
}

/** A copy of its own: texts that were cut out of the manifests would keep these whole in memory. */
function detached(record: BundleRecord): BundleRecord {
  return JSON.parse(JSON.stringify(record)) as BundleRecord;
}
