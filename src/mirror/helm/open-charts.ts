import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { ArchiveMeter } from '../../archive/limits.js';
import { gzipBytes, writeTar } from '../../archive/tar-writer.js';
import { mapConcurrent } from '../../core/concurrency.js';
import { ErrorList, addContext, inContext } from '../../core/diagnostics-error.js';
import { computeDigest } from '../../core/digest.js';
import { LimitError, OpmateError, throwFileError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { statIfPresent } from '../../files/file-status.js';
import { readRegularFile } from '../../files/read-file.js';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import { withoutIgnored } from '../../helm/chart-ignore.js';
import { type ChartImages, findChartImages } from '../../helm/chart-images.js';
import {
  type ChartIndex,
  type IndexedChart,
  findChart,
  matchVersion,
  maxIndexBytes,
  newestFirst,
  parseChartIndex,
} from '../../helm/chart-index.js';
import { type Chart, type ChartFiles, chartLimits, loadChart, readChartArchive } from '../../helm/chart.js';
import { readTree } from '../../source/drivers/file-tree.js';
import { checkUrl, readHttpPlace, receiveFile } from '../../source/drivers/http-request.js';
import { formatUrl } from '../../source/place.js';
import type { Session } from '../../source/session.js';
import { parseManifest } from '../../oci/image/manifest.js';
import { readLimited } from '../../oci/image/read-limited.js';
import { createRegistryRepository } from '../../oci/registry/registry-client.js';
import { isRepositoryName } from '../../oci/registry/registry-names.js';
import type { Repository } from '../../oci/registry/repository.js';
import { retryDamaged } from '../../oci/transport/retry-policy.js';
import { type PackedChart, chartContentType } from './chart-artifact.js';
import {
  type ChartConfig,
  type HelmConfig,
  type HelmRepositoryConfig,
  type LocalChartConfig,
  parseChartRegistry,
} from './helm-config.js';

/** A chart with its images. */
export interface OpenedChart {
  config: ChartConfig;
  /** Name in messages. */
  label: string;
  /** URL of its repository, or its path as written in the configuration. */
  source: string;
  /** Name of its repository; undefined for a local chart. */
  repository: string | undefined;
  packed: PackedChart;
  needed: ChartImages;
}

/** The charts of an image set. */
export interface OpenedCharts {
  charts: OpenedChart[];
  /** Removes downloaded files. */
  close(): Promise<void>;
}

/** Maximum bytes of a packed chart. */
export const maxChartBytes = 100 * 1024 * 1024;
/** Maximum number of charts of all repositories. */
const maxCharts = 20_000;
const downloadsAtOnce = 4;
/** Name of reading charts in progress messages. */
const readTask = 'read charts';

/**
 * Reads the charts of a configuration and finds their images. Throws OpmateError with all charts that cannot be read or
 * rendered, or are missing in their repository.
 */
export async function openCharts(helm: HelmConfig, session: Session): Promise<OpenedCharts> {
  const temporary = await makeTemporaryDirectory(session.temporaryDirectory, session.now());
  try {
    const charts = await new ChartReader(temporary.path, session).read(helm);
    return { charts, close: () => temporary.remove() };
  } catch (error) {
    await temporary.remove();
    throw error;
  } finally {
    session.logger?.progress({ task: readTask, state: 'done' });
  }
}

/** A chart to download. */
interface WantedChart {
  repository: HelmRepositoryConfig;
  /** URL of the index; undefined for a registry. */
  base: URL | undefined;
  indexed: Pick<IndexedChart, 'name' | 'version' | 'urls' | 'digest'>;
  config: ChartConfig;
}

/** Reads the charts of a configuration; collects all errors. */
class ChartReader {
  readonly #session: Session;
  /** Directory for files. */
  readonly #directory: string;
  readonly #errors: ErrorList;
  #fileCount = 0;

  constructor(directory: string, session: Session) {
    this.#session = session;
    this.#directory = directory;
    this.#errors = new ErrorList(session.signal);
  }

  async read(helm: HelmConfig): Promise<OpenedChart[]> {
    const opened: (OpenedChart | undefined)[] = [];
    for (const local of helm.local) opened.push(await this.#attempt(() => this.#openLocal(local)));
    const wanted: WantedChart[] = [];
    for (const repository of helm.repositories)
      wanted.push(...((await this.#attempt(() => this.#select(repository))) ?? []));
    if (wanted.length > maxCharts) throw new LimitError(`mirror.helm: more than ${maxCharts} charts`);
    opened.push(
      ...(await mapConcurrent(
        wanted,
        downloadsAtOnce,
        (chart) => this.#attempt(() => this.#openWanted(chart)),
        this.#session,
      )),
    );
    this.#errors.throwIfAny();
    return opened.filter((chart) => chart !== undefined);
  }

  async #openLocal(config: LocalChartConfig): Promise<OpenedChart> {
    const place = path.resolve(this.#session.workingDirectory, config.path);
    const label = `chart ${config.path}`;
    const { chart, packed } = await this.#readLocal(place, label);
    return this.#toOpened({ config, label, source: config.path, repository: undefined, packed }, chart);
  }

  async #readLocal(place: string, label: string): Promise<{ chart: Chart; packed: PackedChart }> {
    if ((await statIfPresent(place))?.isDirectory() === true) {
      const files = withoutIgnored(await readDirectory(place, this.#session), label);
      const chart = await loadChart(files, label, this.#session);
      return { chart, packed: await this.#pack(chart, await packFiles(chart.name, files)) };
    }
    const bytes = await readRegularFile(place, maxChartBytes, { name: label }).catch(throwFileError(label));
    return this.#readPacked(bytes, label);
  }

  async #readPacked(bytes: Buffer, label: string): Promise<{ chart: Chart; packed: PackedChart }> {
    const chart = await readPackedChart(bytes, label, this.#session);
    return { chart, packed: await this.#pack(chart, bytes) };
  }

  async #pack({ name, version, metadata }: Chart, bytes: Buffer): Promise<PackedChart> {
    const file = path.join(this.#directory, `chart-${this.#fileCount++}.tgz`);
    await writeFile(file, bytes, { flag: 'wx', mode: 0o600 });
    return { name, version, metadata, file, digest: computeDigest(bytes), size: bytes.length };
  }

  /** Returns the configured charts of a repository. */
  async #select(repository: HelmRepositoryConfig): Promise<WantedChart[]> {
    if (repository.charts?.length === 0) return [];
    const label = `chart repository ${quoteGo(repository.name)}`;
    if (repository.url.startsWith('oci://')) return this.#selectTags(repository, label);
    const text = repository.url.replace(/\/index\.yaml$/, '').replace(/\/*$/, '/');
    const base = checkUrl({ kind: 'http', url: text }, this.#session.network);
    const url = new URL('index.yaml', base);
    const bytes = await this.#download(url, maxIndexBytes, label);
    const index = parseChartIndex(bytes.toString(), `${label}: ${formatUrl(url)}`);
    const want = (indexed: IndexedChart, config: ChartConfig): WantedChart => ({
      repository,
      base,
      indexed,
      config,
    });
    if (repository.charts === undefined)
      return wholeIndex(index).map((indexed) => want(indexed, toConfig(repository)));
    const wanted: WantedChart[] = [];
    for (const config of repository.charts) {
      const chart = await this.#attempt(async () => findChart(index, config.name, config.version, label));
      if (chart !== undefined) wanted.push(want(chart, config));
    }
    return wanted;
  }

  /** Returns the configured charts of a registry, whose versions are tags. */
  async #selectTags(repository: HelmRepositoryConfig, label: string): Promise<WantedChart[]> {
    const wanted: WantedChart[] = [];
    for (const config of repository.charts ?? []) {
      const { name, version } = config;
      const result = await this.#attempt(async () => {
        const subject = `${label}: chart ${quoteGo(name)}`;
        const tags = await (await this.#openRepository(repository, name)).listTags(this.#session);
        // A tag cannot hold the + of build metadata. (Source: Helm 3, pkg/registry.)
        const versions = newestFirst(tags.map((tag) => ({ version: tag.replaceAll('_', '+') })));
        const match = matchVersion(versions, version, subject);
        if (match !== undefined) return match;
        throw new OpmateError('NOT_FOUND', `${subject}: version ${quoteGo(version ?? '*')} not found`);
      });
      const indexed = result && { name, version: result.version, urls: [], digest: undefined };
      if (indexed !== undefined) wanted.push({ repository, base: undefined, indexed, config });
    }
    return wanted;
  }

  async #openRepository({ url }: HelmRepositoryConfig, name: string): Promise<Repository> {
    const { registry, path: below } = parseChartRegistry(url);
    const repository = below === '' ? name : `${below}/${name}`;
    if (!isRepositoryName(repository))
      throw new OpmateError('INVALID', `${quoteGo(name)} is not a chart name`);
    const { connect, cache, logger } = this.#session;
    return createRegistryRepository({ connection: await connect(), registry, repository, cache, logger });
  }

  /** Pulls a chart from a registry, verified by digest. */
  async #pull({ repository, indexed: { name, version } }: WantedChart, label: string): Promise<Buffer> {
    const source = await this.#openRepository(repository, name);
    const { descriptor, bytes } = await source.getManifest(version.replaceAll('+', '_'), this.#session);
    const parsed = parseManifest(bytes, { subject: label, mediaType: descriptor.mediaType });
    const layer =
      parsed.kind === 'index'
        ? undefined
        : parsed.manifest.layers.find(({ mediaType }) => mediaType === chartContentType);
    if (layer === undefined)
      throw new OpmateError('INVALID', `${label}: ${source.name}:${version} is not a chart`);
    if (layer.size > maxChartBytes) throw new LimitError(`${label}: more than ${maxChartBytes} bytes`);
    return retryDamaged(
      async () => readLimited(await source.openBlob(layer, this.#session), maxChartBytes, label),
      this.#session,
    );
  }

  async #openWanted(wanted: WantedChart): Promise<OpenedChart> {
    const { repository, base, indexed, config } = wanted;
    const label = `chart ${repository.name}/${indexed.name} ${indexed.version}`;
    const url = base && this.#getUrl(indexed, base, label);
    const bytes =
      url === undefined
        ? await this.#pull(wanted, label)
        : await this.#download(url, maxChartBytes, label, indexed.digest);
    const { chart, packed } = await this.#readPacked(bytes, label);
    const place = url === undefined ? repository.url : formatUrl(url);
    if (chart.name !== indexed.name)
      throw new OpmateError('INVALID', `${label}: ${place} holds chart ${quoteGo(chart.name)}`);
    return this.#toOpened(
      { config, label, source: repository.url, repository: repository.name, packed },
      chart,
    );
  }

  /** Returns the URL of a chart, possibly of another host, but not of a file. */
  #getUrl({ urls }: Pick<IndexedChart, 'urls'>, base: URL, label: string): URL {
    const [text = ''] = urls;
    try {
      return checkUrl({ kind: 'http', url: new URL(text, base).href }, this.#session.network);
    } catch (error) {
      if (error instanceof OpmateError) throw addContext(error, { subject: label });
      throw new OpmateError('INVALID', `${label}: invalid URL ${quoteGo(text)}`);
    }
  }

  async #download(url: URL, limit: number, label: string, digest?: string): Promise<Buffer> {
    const shown = formatUrl(url);
    const limits = { ...chartLimits, maxUnpackedSize: limit };
    const file = await inContext({ subject: label }, () =>
      readHttpPlace({ url }, this.#session, async (response) => {
        const target = path.join(this.#directory, `download-${this.#fileCount++}`);
        const received = await receiveFile(response, shown, target, { ...this.#session, limits });
        if (digest === undefined || digest === received) return target;
        throw new OpmateError('DIGEST', `${shown}: expected ${digest}, got ${received}`);
      }),
    );
    return readRegularFile(file, limit, { name: shown });
  }

  async #toOpened(chart: Omit<OpenedChart, 'needed'>, loaded: Chart): Promise<OpenedChart> {
    const { label, config } = chart;
    const { logger } = this.#session;
    logger?.progress({ task: readTask, state: 'update', current: this.#fileCount, unit: 'items' });
    return { ...chart, needed: await findChartImages(loaded, label, toRenderOptions(config)) };
  }

  #attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    return this.#errors.try(work, ({ code }) => code !== 'INTERNAL' && code !== 'IO');
  }
}

/** Reads a packed chart. Throws OpmateError. */
export async function readPackedChart(
  bytes: Buffer,
  label: string,
  { signal }: Pick<Session, 'signal'>,
): Promise<Chart> {
  const meter = new ArchiveMeter(chartLimits);
  const source = Readable.from([bytes], { objectMode: false });
  const files = await readChartArchive(source, label, { meter, signal });
  return loadChart(files, label, { meter, signal });
}

/** Returns the options of finding the images of a chart. */
export function toRenderOptions({ imagePaths, values }: ChartConfig) {
  return { paths: imagePaths, values };
}

/** Returns the configuration of a chart that its repository alone names. */
export function toConfig({ place }: Pick<HelmRepositoryConfig, 'place'>): ChartConfig {
  return { imagePaths: [], platforms: [], values: undefined, place };
}

function wholeIndex(index: ChartIndex): IndexedChart[] {
  return [...index.values()].flat().filter(({ isLibrary }) => !isLibrary);
}

async function readDirectory(directory: string, { signal, followLinks }: Session): Promise<ChartFiles> {
  const tree = await readTree(directory, { limits: chartLimits, signal, followLinks });
  const files = new Map<string, Buffer>();
  for (const { path: name } of tree.files)
    files.set(name, await readRegularFile(path.join(directory, name), chartLimits.maxFileSize));
  return files;
}

/** Packs a directory; equal directories have equal bytes. */
async function packFiles(name: string, files: ChartFiles): Promise<Buffer> {
  const entries = [...files].map(([file, content]) => ({ path: `${name}/${file}`, content }));
  const chunks: Buffer[] = [];
  for await (const chunk of writeTar(entries)) chunks.push(chunk as Buffer);
  return gzipBytes(Buffer.concat(chunks));
}
