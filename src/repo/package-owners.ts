import { LineCounter, readDocuments } from '../catalog/documents.js';
import { openFile } from '../catalog/file-access.js';
import { withOpen } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { getOrAdd } from '../core/groups.js';
import { getText } from '../document/json-fields.js';
import { schemas } from '../model/declarative-config.js';
import type { SourceSession } from '../source/session.js';
import {
  type OperatorRepository,
  findCatalogFile,
  listSubdirectories,
  pathIn,
  requireInRepository,
} from './repository.js';

/** The package of a committed catalog of an operator. */
interface CommittedPackage {
  name: string;
  operator: string;
  file: string;
  /** One-based line of its blob. */
  line: number;
}

/** Packages of a catalog by the names that they are found by. */
interface CatalogPackages {
  byName: Map<string, CommittedPackage[]>;
  byOperator: Map<string, CommittedPackage>;
}

/** Finds packages that two operators have in one catalog, which could not be served. */
export class PackageOwners {
  readonly #repository: OperatorRepository;
  readonly #session: SourceSession;
  readonly #isRendered: (operator: string) => boolean;
  readonly #claimed = new Map<string, string>();
  readonly #committed = new Map<string, Promise<CatalogPackages>>();

  /** `isRendered` reports whether committed catalogs of an operator are left out, as renderings replace them. */
  constructor(
    repository: OperatorRepository,
    session: SourceSession,
    isRendered: (operator: string) => boolean = () => false,
  ) {
    this.#repository = repository;
    this.#session = session;
    this.#isRendered = isRendered;
  }

  /**
   * Records that an operator renders a package to a catalog. Returns another operator that does, or that has the package
   * in a committed catalog; undefined if none.
   */
  async claim(catalog: string, name: string, operator: string): Promise<string | undefined> {
    const owner = getOrAdd(this.#claimed, `${catalog} ${name}`, () => operator);
    return owner === operator ? this.#findOther(catalog, name, operator) : owner;
  }

  /** Returns the package of a committed catalog of an operator that another one has as well; undefined if none. */
  async findShared(
    catalog: string,
    operator: string,
  ): Promise<{ own: CommittedPackage; other: string } | undefined> {
    const own = (await this.#readCatalog(catalog)).byOperator.get(operator);
    const other = own === undefined ? undefined : await this.#findOther(catalog, own.name, operator);
    return own === undefined || other === undefined ? undefined : { own, other };
  }

  async #findOther(catalog: string, name: string, operator: string): Promise<string | undefined> {
    const packages = (await this.#readCatalog(catalog)).byName.get(name) ?? [];
    return packages.find((item) => item.operator !== operator)?.operator;
  }

  /** Reads the package of each operator of a catalog once. */
  #readCatalog(catalog: string): Promise<CatalogPackages> {
    return getOrAdd(this.#committed, catalog, async () => {
      const packages: CatalogPackages = { byName: new Map(), byOperator: new Map() };
      for (const operator of await listSubdirectories(this.#repository, 'catalogs', catalog)) {
        const found = this.#isRendered(operator) ? undefined : await this.#readPackage(catalog, operator);
        if (found === undefined) continue;
        getOrAdd(packages.byName, found.name, () => []).push(found);
        packages.byOperator.set(operator, found);
      }
      return packages;
    });
  }

  /** Returns the first package of a catalog file; undefined for an unreadable one, which other checks report. */
  async #readPackage(catalog: string, operator: string): Promise<CommittedPackage | undefined> {
    const { signal } = this.#session;
    try {
      const place = await findCatalogFile(this.#repository, catalog, operator);
      if (place === undefined) return undefined;
      const file = pathIn(this.#repository, place);
      await requireInRepository(this.#repository, file);
      return await withOpen(openFile(file, file), async (handle) => {
        for await (const { value, offset } of readDocuments({ handle, label: file }, { signal })) {
          if (getText(value, 'schema') !== schemas.package) continue;
          const line = await new LineCounter(file).lineOf(handle, offset);
          return { name: getText(value, 'name'), operator, file, line };
        }
        return undefined;
      });
    } catch (error) {
      if (error instanceof OpmateError && error.code !== 'CANCELLED') return undefined;
      throw error;
    }
  }
}
