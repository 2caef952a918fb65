import { type GoValue, GoStruct, toText } from '../go-values.js';
import { type FunctionTable, define } from './define.js';

const months = 'January February March April May June July August September October November December'.split(
  ' ',
);
const days = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** Formats a time in UTC with a Go layout. */
function formatTime(layout: string, time: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const [year, month, day] = [time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate()];
  const [hour, minutes, seconds] = [time.getUTCHours(), time.getUTCMinutes(), time.getUTCSeconds()];
  const [monthName, dayName] = [months[month] as string, days[time.getUTCDay()] as string];
  const parts: Readonly<Record<string, string>> = {
    ...{ '2006': String(year), '06': two(year % 100) },
    ...{ January: monthName, Jan: monthName.slice(0, 3), '01': two(month + 1), '1': String(month + 1) },
    ...{ Monday: dayName, Mon: dayName.slice(0, 3) },
    ...{ '02': two(day), _2: String(day).padStart(2), '2': String(day) },
    ...{ '15': two(hour), '03': two(hour % 12 || 12), '3': String(hour % 12 || 12) },
    ...{ PM: hour < 12 ? 'AM' : 'PM', pm: hour < 12 ? 'am' : 'pm' },
    ...{ '04': two(minutes), '4': String(minutes), '05': two(seconds), '5': String(seconds) },
    ...{ MST: 'UTC', 'Z07:00': 'Z', Z0700: 'Z', '-07:00': '+00:00', '-0700': '+0000', '-07': '+00' },
  };
  return layout.replace(
    /2006|January|Jan|Monday|Mon|MST|Z07:00|Z0700|-07:00|-0700|-07|0[1-6]|15|_2|[1-5]|PM|pm/g,
    (part) => parts[part] ?? part,
  );
}

/** Constant time, so that charts that print the time render reproducibly. */
const epoch = new Date(0);

/** Returns a time in milliseconds; that of `now` beyond the range of dates. */
const validTime = (time: number): Date => (Number.isNaN(new Date(time).getTime()) ? epoch : new Date(time));

const parseTime = (value: GoValue): Date => {
  if (value instanceof GoStruct && typeof value.content === 'string') return new Date(value.content);
  return typeof value === 'bigint' ? validTime(Number(value) * 1000) : epoch;
};

function timeStruct(time: Date): GoStruct {
  return new GoStruct(
    'time.Time',
    {
      Format: ([layout = '']) => formatTime(toText(layout), time),
      Unix: () => BigInt(Math.floor(time.getTime() / 1000)),
      Year: () => BigInt(time.getUTCFullYear()),
      Month: () => months[time.getUTCMonth()] as string,
      Day: () => BigInt(time.getUTCDate()),
      String: () => formatTime('2006-01-02 15:04:05 -0700 MST', time),
      UTC: () => timeStruct(time),
    },
    time.toISOString(),
  );
}

const units: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1, ms: 0.001 };

function getSeconds(text: string): number {
  let seconds = 0;
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(h|ms|m|s)/g))
    seconds += Number(amount) * (units[unit as string] as number);
  return text.startsWith('-') ? -seconds : seconds;
}

function durationText(seconds: number): string {
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  const rest = `${Math.floor(seconds % 60)}s`;
  return hours > 0 ? `${hours}h${minutes}m${rest}` : minutes > 0 ? `${minutes}m${rest}` : rest;
}

const modify = define('sa', ([change, time]) =>
  timeStruct(validTime(parseTime(time).getTime() + getSeconds(change) * 1000)),
);
const inZone = define('sas', ([layout, time]) => formatTime(layout, parseTime(time)));
const toDate = define('ss', ([, text]) => timeStruct(validTime(Date.parse(text))));

/** Functions for times; `now` is the start of 1970. */
export const timeFunctions: FunctionTable = {
  now: define('', () => timeStruct(epoch)),
  date: define('sa', ([layout, time]) => formatTime(layout, parseTime(time))),
  ...{ dateInZone: inZone, date_in_zone: inZone },
  htmlDate: define('a', ([time]) => formatTime('2006-01-02', parseTime(time))),
  htmlDateInZone: define('as', ([time]) => formatTime('2006-01-02', parseTime(time))),
  ...{ dateModify: modify, date_modify: modify, mustDateModify: modify, must_date_modify: modify },
  ...{ toDate, mustToDate: toDate },
  unixEpoch: define('a', ([time]) => String(Math.floor(parseTime(time).getTime() / 1000))),
  ago: define('a', () => '0s'),
  // sprig ignores an int.
  duration: define('a', ([seconds]) =>
    durationText(typeof seconds === 'string' && /^[+-]?\d{1,18}$/.test(seconds) ? Number(seconds) : 0),
  ),
  durationRound: define('a', ([value]) =>
    typeof value === 'string' ? durationText(getSeconds(value)) : '0s',
  ),
};
