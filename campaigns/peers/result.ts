import { z } from 'zod'

const word = z.string().min(1)
/** A median, or the reason why there is none. */
const series = z.union([z.strictObject({ n: z.int().positive(), p50Ms: z.number() }), z.strictObject({ absent: word })])

/** `yes`: it was observed; `no`: it was not; `refused`: the script was not permitted to leave or read it. */
const seen = z.strictObject({ seen: z.enum(['yes', 'no', 'refused']), said: z.string() })

/** The measurements of one peer, or the reason why there are none. */
export const rowSchema: z.ZodType<Row> = z.union([
  z.strictObject({ id: word, name: word, versions: z.record(word, word), missing: word }),
  z.strictObject({
    id: word,
    name: word,
    versions: z.record(word, word),
    cold: series,
    warm: series,
    toolCall: series,
    timeout: z.union([
      z.strictObject({ absent: word }),
      z.strictObject({ n: z.int().positive(), p50Ms: z.number(), cpuShareAfter: z.number(), loopDead: z.boolean() }),
    ]),
    orphans: z.strictObject({
      processes: z.array(z.string()),
      containers: z.int().nonnegative(),
      files: z.array(z.string()),
    }),
    leaks: z.strictObject({ variable: seen, file: seen, process: seen }),
    exposed: z.strictObject({ environment: seen, home: seen, tmp: seen, loopback: seen, gateway: seen }),
  }),
])

/** A median of `n` values, or the reason why there is none. */
export type Series = { n: number; p50Ms: number } | { absent: string }

/** An observation, with the words of the script or the peer. */
export interface Seen {
  seen: 'yes' | 'no' | 'refused'
  said: string
}

/** A peer that was measured. */
export interface MeasuredRow {
  id: string
  name: string
  versions: Record<string, string>
  /** Time from a host process that has loaded the library to the output of the first script. */
  cold: Series
  /** The same script, when everything that is reused exists. */
  warm: Series
  toolCall: Series
  timeout: { n: number; p50Ms: number; cpuShareAfter: number; loopDead: boolean } | { absent: string }
  orphans: { processes: string[]; containers: number; files: string[] }
  leaks: { variable: Seen; file: Seen; process: Seen }
  exposed: { environment: Seen; home: Seen; tmp: Seen; loopback: Seen; gateway: Seen }
}

/** One row of the record. */
export type Row = MeasuredRow | { id: string; name: string; versions: Record<string, string>; missing: string }

/** All of one run of the bench. */
export interface Comparison {
  /** ISO date. */
  date: string
  machine: string
  versions: Record<string, string>
  rows: Row[]
}

/** The schema of the record. */
export const comparisonSchema: z.ZodType<Comparison> = z.strictObject({
  date: z.iso.date(),
  machine: word,
  versions: z.record(word, word),
  rows: z.array(rowSchema).min(1),
})
