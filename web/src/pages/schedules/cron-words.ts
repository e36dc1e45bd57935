// Says a cron expression in words, such as "At 09:00, Monday to Friday". The server decides about the times.
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MOST_TIMES = 4;

interface Part {
  first: number;
  /** The same as `first` for a single number. */
  last: number;
  step: number;
}

interface Field {
  /** Starts with an asterisk, so that it does not restrict the days. */
  isAny: boolean;
  parts: readonly Part[];
}

/** Null: the expression is not one of five fields that this page understands. */
export function describeCron(expression: string): string | null {
  const texts = expression.trim().toLowerCase().split(/\s+/);
  if (texts.length !== 5) {
    return null;
  }
  const [minute, hour, day, month, weekday] = [
    readField(texts[0] ?? "", 0, 59),
    readField(texts[1] ?? "", 0, 23),
    readField(texts[2] ?? "", 1, 31),
    readField(texts[3] ?? "", 1, 12, MONTHS),
    readField(texts[4] ?? "", 0, 7, WEEKDAYS),
  ];
  if (minute === null || hour === null || day === null || month === null || weekday === null) {
    return null;
  }
  const time = describeTime(minute, hour);
  const days = describeDays(day, weekday);
  const months = isEvery(month) ? null : `in ${describeParts(month, (number) => MONTHS[number - 1] ?? "", "month")}`;
  const isDaily = /^at \d\d:/.test(time) && days === null && months === null;
  const text = [time, isDaily ? "every day" : days, months].filter((one) => one !== null).join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function readField(text: string, low: number, high: number, names: readonly string[] = []): Field | null {
  const parts: Part[] = [];
  for (const item of text.split(",")) {
    const match = /^(\*|[a-z]{3}|\d{1,2})(?:-([a-z]{3}|\d{1,2}))?(?:\/(\d{1,2}))?$/.exec(item);
    if (match === null) {
      return null;
    }
    const [, start = "", end, steps] = match;
    const isAll = start === "*";
    const first = isAll ? low : readNumber(start, low, names);
    const last =
      end !== undefined ? readNumber(end, low, names) : isAll || steps !== undefined ? maximum(high, names) : first;
    const step = Number(steps ?? 1);
    if (first < low || last > high || first > last || step < 1 || (isAll && end !== undefined)) {
      return null;
    }
    parts.push({ first, last, step });
  }
  return { isAny: text.startsWith("*"), parts };
}

/** The day of the week goes to 7, but the last day of a week is 6. */
function maximum(high: number, names: readonly string[]): number {
  return names === WEEKDAYS ? 6 : high;
}

/** -1 for a name that does not exist: no field goes that low. */
function readNumber(text: string, low: number, names: readonly string[]): number {
  if (/^\d+$/.test(text)) {
    return Number(text);
  }
  const index = names.findIndex((name) => name.slice(0, 3).toLowerCase() === text);
  return index < 0 ? -1 : index + low;
}

function isEvery(field: Field): boolean {
  const [only] = field.parts;
  return field.isAny && field.parts.length === 1 && only?.step === 1;
}

/** The step of a field that is an asterisk with a step. */
function stepOf(field: Field): number | null {
  const [only] = field.parts;
  return field.isAny && field.parts.length === 1 && only !== undefined && only.step > 1 ? only.step : null;
}

/** The numbers of a field that is only a list of numbers. */
function numbersOf(field: Field): number[] | null {
  return field.parts.every((part) => part.first === part.last) ? field.parts.map((part) => part.first) : null;
}

function describeTime(minute: Field, hour: Field): string {
  const minutes = numbersOf(minute);
  const hours = numbersOf(hour);
  if (minutes !== null && hours !== null && minutes.length * hours.length <= MOST_TIMES) {
    const times = hours.flatMap((one) => minutes.map((two) => `${pad(one)}:${pad(two)}`));
    return `at ${join(times.sort())}`;
  }
  const step = stepOf(minute);
  const often = isEvery(minute)
    ? "every minute"
    : step !== null
      ? `every ${step} minutes`
      : minutes?.length === 1 && minutes[0] === 0
        ? "every hour"
        : `at ${minutes?.length === 1 ? "minute" : "minutes"} ${describeParts(minute, String, "minute")} of every hour`;
  if (isEvery(hour)) {
    return often;
  }
  const hourStep = stepOf(hour);
  if (often === "every hour" && hourStep !== null) {
    return `every ${hourStep} hours`;
  }
  return `${often.replace(" of every hour", "")} of ${hours?.length === 1 ? "hour" : "hours"} ${describeParts(hour, String, "hour")}`;
}

function describeDays(day: Field, weekday: Field): string | null {
  const days = isEvery(day)
    ? null
    : `on ${numbersOf(day)?.length === 1 ? "day" : "days"} ${describeParts(day, String, "day")} of the month`;
  const weekdays = isEvery(weekday)
    ? null
    : describeParts(weekday, (number) => WEEKDAYS[number % WEEKDAYS.length] ?? "", "day of the week");
  if (days === null || weekdays === null) {
    return days ?? weekdays;
  }
  return day.isAny || weekday.isAny ? `${days}, only ${weekdays}` : `${days} or ${weekdays}`;
}

function describeParts(field: Field, name: (number: number) => string, unit: string): string {
  return join(
    field.parts.map(({ first, last, step }) => {
      const range = first === last ? name(first) : `${name(first)} to ${name(last)}`;
      return step === 1 ? range : `${range} (every ${ordinal(step)} ${unit})`;
    }),
  );
}

function ordinal(number: number): string {
  const endings: Record<number, string> = { 1: "st", 2: "nd", 3: "rd" };
  const isTeen = number % 100 >= 11 && number % 100 <= 13;
  return `${number}${isTeen ? "th" : (endings[number % 10] ?? "th")}`;
}

function join(texts: readonly string[]): string {
  const last = texts.at(-1) ?? "";
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(", ")} and ${last}`;
}

function pad(number: number): string {
  return String(number).padStart(2, "0");
}
