import { z } from 'zod'
import { harnessActivityFrames } from './harness-activity-frames.ts'
import { harnessFrames } from './harness-frames.ts'
import { hostActivityFrames } from './host-activity-frames.ts'
import { hostFrames } from './host-frames.ts'
import { PROTOCOL_VERSION } from './version.ts'

/** The wire protocol as JSON Schema 2020-12: one definition for each type of frame, as it is on the wire. */
export function protocolSchema(): ProtocolSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Sandglass wire protocol',
    version: PROTOCOL_VERSION,
    host_to_harness: definitions({ ...hostFrames, ...hostActivityFrames }),
    harness_to_host: definitions({ ...harnessFrames, ...harnessActivityFrames }),
  }
}

/** The result of {@link protocolSchema}. */
export interface ProtocolSchema {
  readonly $schema: string
  readonly title: string
  readonly version: number
  readonly host_to_harness: Readonly<Record<string, unknown>>
  readonly harness_to_host: Readonly<Record<string, unknown>>
}

function definitions(frames: Readonly<Record<string, z.ZodType>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(frames).map(([type, schema]) => {
      // `input`: a field with a default may be absent on the wire.
      const { $schema: _, ...definition } = z.toJSONSchema(schema, { io: 'input' })
      return [type, definition]
    }),
  )
}
