import { parseGoDuration } from '../../../core/text/go-duration.js';
import { type GoValue, GoStruct, toInt, toText } from '../go-values.js';
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
    '2006': String(year),
    '06': two(year % 100),
    January: monthName,
    Jan: monthName.slice(0, 3),
    '01': two(month + 1),
    '1': String(month + 1),
    Monday: dayName,
    Mon: dayName.slice(0, 3),
    '02': two(day),
    _2: String(day).padStart(2),
    '2': String(day),
    '15': two(hour),
    '03': two(hour % 12 || 12),
    '3': String(hour % 12 || 12),
    PM: hour < 12 ? 'AM' : 'PM',
    pm: hour < 12 ? 'am' : 'pm',
    '04': two(minutes),
    '4': String(minutes),
    '05': two(seconds),
    '5': String(seconds),
    MST: 'UTC',
    'Z07:00': 'Z',
    Z0700: 'Z',
    '-07:00': '+00:00',
    '-0700': '+0000',
    '-07': '+00',
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

/** Returns the milliseconds of a duration; 0 for other text. */
function parseDuration(text: string): number {
  const size = parseGoDuration(text.replace(/^[-+]/, '')) ?? 0;
  return text.startsWith('-') ? -size : size;
}

/** Returns a duration of whole seconds as Go prints it. */
function printDuration(seconds: number): string {
  const size = Math.abs(seconds);
  const [hours, minutes] = [Math.floor(size / 3600), Math.floor((size % 3600) / 60)];
  const parts = hours > 0 ? `${hours}h${minutes}m` : minutes > 0 ? `${minutes}m` : '';
  return `${seconds < 0 ? '-' : ''}${parts}${size % 60}s`;
}

const hour = 3_600_000;
const roundUnits = { y: 8760 * hour, mo: 720 * hour, d: 24 * hour, h: hour, m: 60_000, s: 1000 };

/** Returns the whole number of the largest unit that a duration exceeds. */
function roundDuration(milliseconds: number): string {
  const size = Math.abs(milliseconds);
  const unit = Object.entries(roundUnits).find(([, length]) => size > length);
  return unit === undefined ? '0s' : `${Math.floor(size / unit[1])}${unit[0]}`;
}

const modify = define('sa', ([change, time]) =>
  timeStruct(validTime(parseTime(time).getTime() + parseDuration(change))),
);
const inZone = define('sas', ([layout, time]) => formatTime(layout, parseTime(time)));
const toDate = define('ss', ([, text]) => timeStruct(validTime(Date.parse(text))));

/** Functions for times; `now` is the start of 1970. */
export const timeFunctions: FunctionTable = {
  now: define('', () => timeStruct(epoch)),
  date: define('sa', ([layout, time]) => formatTime(layout, parseTime(time))),
  dateInZone: inZone,
  date_in_zone: inZone,
  htmlDate: define('a', ([time]) => formatTime('2006-01-02', parseTime(time))),
  htmlDateInZone: define('as', ([time]) => formatTime('2006-01-02', parseTime(time))),
  dateModify: modify,
  date_modify: modify,
  mustDateModify: modify,
  must_date_modify: modify,
  toDate,
  mustToDate: toDate,
  unixEpoch: define('a', ([time]) => String(Math.floor(parseTime(time).getTime() / 1000))),
  ago: define('a', () => '0s'),
  // sprig ignores an int, but not the int64 that most functions return.
  duration: define('a', ([seconds]) =>
    printDuration(typeof seconds === 'string' || typeof seconds === 'bigint' ? Number(toInt(seconds)) : 0),
  ),
  durationRound: define('a', ([value]) =>
    roundDuration(
      typeof value === 'string' ? parseDuration(value) : typeof value === 'bigint' ? Number(value) / 1e6 : 0,
    ),
  ),
};
