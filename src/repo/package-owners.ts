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

/** Finds packages that two operators have in one catalog, which could not be served. */
export class PackageOwners {
  readonly #repository: OperatorRepository;
  readonly #session: SourceSession;
  readonly #claimed = new Map<string, string>();
  readonly #committed = new Map<string, Promise<CommittedPackage[]>>();

  constructor(repository: OperatorRepository, session: SourceSession) {
    this.#repository = repository;
    this.#session = session;
  }

  /**
   * Records that an operator renders a package to a catalog. Returns another operator that does, or that has the package
   * in a committed catalog which `isRendered` does not replace; undefined if none.
   */
  async claim(
    { catalog, operator, name }: { catalog: string; operator: string; name: string },
    isRendered: (operator: string) => boolean,
  ): Promise<string | undefined> {
    const owner = getOrAdd(this.#claimed, `${catalog} ${name}`, () => operator);
    if (owner !== operator) return owner;
    const isOther = (other: string): boolean => other !== operator && !isRendered(other);
    return (await this.#readCatalog(catalog, isOther)).find(
      (item) => item.name === name && isOther(item.operator),
    )?.operator;
  }

  /** Returns the packages of a committed catalog of an operator that another one has as well. */
  async findShared(catalog: string, operator: string): Promise<{ own: CommittedPackage; other: string }[]> {
    const packages = await this.#readCatalog(catalog, () => true);
    return packages
      .filter((item) => item.operator === operator)
      .flatMap((own) => {
        const other = packages.find((item) => item.name === own.name && item.operator !== operator);
        return other === undefined ? [] : [{ own, other: other.operator }];
      });
  }

  /** Reads the package of each operator of a catalog once; operators that `isWanted` refuses may be left out. */
  async #readCatalog(catalog: string, isWanted: (operator: string) => boolean): Promise<CommittedPackage[]> {
    const operators = await listSubdirectories(this.#repository, 'catalogs', catalog);
    if (!operators.some(isWanted)) return [];
    return getOrAdd(this.#committed, catalog, async () => {
      const packages: CommittedPackage[] = [];
      for (const operator of operators) {
        const found = await this.#readPackage(catalog, operator);
        if (found !== undefined) packages.push(found);
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
