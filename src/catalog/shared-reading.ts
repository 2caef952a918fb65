import { throwIfCancelled } from '../core/errors.js';
import type { OpmateError } from '../core/errors.js';
import { shareBlob } from './blob.js';
import type { Catalog, MetasOptions } from './catalog.js';
import type { Meta } from './meta.js';

/** A reader of a shared pass. It must read its catalog or call `skip`: the others wait for it. */
export interface SharedReader {
  /** The same catalog. The first iteration over its blobs joins the pass; others read alone. */
  catalog: Catalog;
  /** Leaves the pass, unless this reader has joined. */
  skip(): void;
}

type ReadOptions = Pick<MetasOptions, 'signal' | 'logger'>;

/**
 * Returns readers of a catalog that share one pass: each blob is read, parsed and decoded once, and the next one follows when all
 * readers are done with it. Faults go to each reader, as if it read alone.
 */
export function shareReading(catalog: Catalog, readers: number, options: ReadOptions): SharedReader[] {
  const pass = new SharedPass(catalog, readers, options);
  return Array.from({ length: readers }, () => {
    let isExpected = true;
    const leave = (): boolean => {
      const wasExpected = isExpected;
      isExpected = false;
      return wasExpected;
    };
    return {
      catalog: withMetas(catalog, async function* metas(own = {}) {
        const joins = own.withoutManifests !== true && leave();
        yield* joins ? pass.join(own) : catalog.metas(own);
      }),
      skip() {
        if (leave()) pass.leave();
      },
    };
  });
}

/** Returns a catalog with other `metas`; its own methods need an object with private fields. */
function withMetas(catalog: Catalog, metas: Catalog['metas']): Catalog {
  const { storedImages, storedMembers, listFiles } = catalog;
  return {
    name: catalog.name,
    metas,
    read: (origin) => catalog.read(origin),
    readText: (origin) => catalog.readText(origin),
    lineOf: (origin, path) => catalog.lineOf(origin, path),
    ...(storedImages && { storedImages: storedImages.bind(catalog) }),
    ...(storedMembers && { storedMembers: storedMembers.bind(catalog) }),
    ...(listFiles && { listFiles: listFiles.bind(catalog) }),
    close: () => catalog.close(),
  };
}

/** A blob, a fault in the content, the error that ends a pass, or its end. */
type Step = { meta: Meta } | { fault: OpmateError } | { error: unknown } | undefined;

class SharedPass {
  readonly #metas: AsyncGenerator<Meta, void, undefined>;
  /** Results of reading that no reader has received, a blob after its faults. */
  readonly #steps: Step[] = [];
  /** Readers in the pass, or expected in it. */
  #readers: number;
  #waiting: ((step: Step) => void)[] = [];
  #isReading = false;

  constructor(catalog: Catalog, readers: number, options: ReadOptions) {
    this.#readers = readers;
    const onFault = (fault: OpmateError): unknown => this.#steps.push({ fault });
    this.#metas = catalog.metas({ ...options, onFault });
  }

  async *join({ onFault, signal }: MetasOptions): AsyncGenerator<Meta, void, undefined> {
    try {
      for (;;) {
        const step = await this.#receive();
        throwIfCancelled(signal);
        if (step === undefined) return;
        if ('meta' in step) yield step.meta;
        else if ('error' in step) throw step.error;
        else if (onFault === undefined) throw step.fault;
        else onFault(step.fault);
      }
    } finally {
      this.leave();
    }
  }

  /** One reader less to wait for. */
  leave(): void {
    this.#readers--;
    if (this.#readers > 0) return this.#readIfAllWait();
    shareBlob(undefined);
    void this.#metas.return().catch(() => undefined);
  }

  #receive(): Promise<Step> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#readIfAllWait();
    });
  }

  #readIfAllWait(): void {
    if (this.#isReading || this.#waiting.length < this.#readers) return;
    this.#isReading = true;
    void this.#read().then((step) => {
      this.#isReading = false;
      for (const resolve of this.#waiting.splice(0)) resolve(step);
    });
  }

  async #read(): Promise<Step> {
    if (this.#steps.length === 0) {
      try {
        const { value, done } = await this.#metas.next();
        if (done !== true) shareBlob(value);
        this.#steps.push(done === true ? undefined : { meta: value });
      } catch (error) {
        this.#steps.push({ error });
      }
    }
    return this.#steps.shift();
  }
}
