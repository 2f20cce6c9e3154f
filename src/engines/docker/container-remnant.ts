import type { OwnerState } from './owner.ts'

/** A container of this product, alive or left over. */
export interface ContainerRemnant {
  readonly id: string
  readonly name: string
  readonly state: string
  readonly owner: OwnerState
  readonly pid: number | null
  readonly created: string | null
  /** Whether nobody can need it any more. */
  readonly isLeftOver: boolean
}
