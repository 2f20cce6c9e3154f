import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { defineTool, type ToolsInput } from '../../src/index.ts'

const KM_PER_LIGHT_MINUTE = 17_987_547.48

const planet = z.object({
  name: z.string(),
  diameter_km: z.number(),
  distance_million_km: z.number(),
  year_days: z.number(),
  mean_temperature_c: z.number(),
})

/** The functions that the script may call. The file and its path stay in this process. */
export function planetTools(): ToolsInput {
  return [
    defineTool({
      name: 'planets',
      description: 'The planets of the Sun, nearest first.',
      effect: 'read',
      input: z.object({}),
      output: z.array(planet),
      execute: () => readPlanets(),
    }),
    defineTool({
      name: 'light_minutes',
      description: 'How many minutes light takes for a distance.',
      effect: 'read',
      input: z.object({ million_km: z.number() }),
      output: z.number(),
      execute: ({ million_km: distance }) => Math.round((distance * 1e6 * 10) / KM_PER_LIGHT_MINUTE) / 10,
    }),
  ]
}

function readPlanets(): z.infer<typeof planet>[] {
  const [head = '', ...lines] = readFileSync(new URL('planets.csv', import.meta.url), 'utf8')
    .trim()
    .split('\n')
  const names = head.split(',')
  return lines.map((line) => {
    const cells = line.split(',').map((cell, n) => [names[n], n === 0 ? cell : Number(cell)])
    return planet.parse(Object.fromEntries(cells))
  })
}
