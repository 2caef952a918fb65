/** Maximum waiting pieces of work: of one key, of one client, and together. */
const limits = { key: 4, client: 32, all: 256 };

interface Waiting {
  client: string;
  key: string;
  start: () => void;
}

/**
 * Creates a queue that does one piece of work at a time, in turn for clients, and for each in turn for its keys: a flood of
 * one client or with one key delays others by a piece each at most.
 */
export function createFairQueue() {
  let waiting: Waiting[] = [];
  let isWorking = false;
  /** Turns in which a client, or a key of it, was last served. */
  const served = new Map<string, number>();
  let turn = 0;

  function startNext(): void {
    const turnOf = (name: string): number => served.get(name) ?? 0;
    const next = waiting.reduce<Waiting | undefined>((best, item) => {
      if (best === undefined) return item;
      const byClient = turnOf(item.client) - turnOf(best.client);
      return (byClient || turnOf(nameOf(item)) - turnOf(nameOf(best))) < 0 ? item : best;
    }, undefined);
    if (next === undefined) {
      served.clear();
      return;
    }
    waiting = waiting.filter((item) => item !== next);
    isWorking = true;
    turn++;
    served.set(next.client, turn).set(nameOf(next), turn);
    next.start();
  }

  const hasRoom = (client: string, key: string): boolean => {
    const own = waiting.filter((item) => item.client === client);
    const same = waiting.filter((item) => item.key === key && item.client === client);
    return waiting.length < limits.all && own.length < limits.client && same.length < limits.key;
  };

  return {
    /** Returns the result of the work when it had its turn; undefined if too much work waits. */
    async run<T>(client: string, key: string, work: () => Promise<T>): Promise<T | undefined> {
      if (!hasRoom(client, key)) return undefined;
      await new Promise<void>((start) => {
        waiting.push({ client, key, start });
        if (!isWorking) startNext();
      });
      try {
        return await work();
      } finally {
        isWorking = false;
        startNext();
      }
    },
  };
}

function nameOf({ client, key }: Pick<Waiting, 'client' | 'key'>): string {
  return `${client} ${key}`;
}

/** Returns the part of an IP address that one client has: of version 6, a network of 64 bits. */
export function getClientNetwork(address: string | undefined): string {
  if (address === undefined || !address.includes(':') || address.startsWith('::ffff:')) return address ?? '';
  return address.split(':').slice(0, 4).join(':');
}
