// The roles and what they permit, as docs/identities.md lists them. The server decides; the page explains.
import { z } from "@/design/zod";

export type Permission = "view" | "operate" | "approve" | "change_policy" | "manage_members";

const PERMISSIONS: Record<Permission, string> = {
  view: "read everything",
  operate: "work in sessions",
  approve: "decide calls",
  change_policy: "change rules",
  manage_members: "manage members, keys and limits",
};

export const ROLES = {
  viewer: ["view"],
  operator: ["view", "operate"],
  approver: ["view", "approve"],
  member: ["view", "operate", "approve"],
  policy_admin: ["view", "change_policy"],
  admin: ["view", "operate", "approve", "change_policy", "manage_members"],
} as const satisfies Record<string, readonly Permission[]>;

export type RoleName = keyof typeof ROLES;
export const ROLE_NAMES = Object.keys(ROLES) as RoleName[];

function isKnown(role: string): role is RoleName {
  return Object.hasOwn(ROLES, role);
}

export function permissionsOf(roles: readonly string[]): Permission[] {
  const permitted = new Set<Permission>(roles.filter(isKnown).flatMap((role) => [...ROLES[role]]));
  return (Object.keys(PERMISSIONS) as Permission[]).filter((permission) => permitted.has(permission));
}

/** `read everything, work in sessions`. Without a permission: `nothing by themselves`. */
export function describePermissions(permissions: readonly Permission[]): string {
  return permissions.length === 0 ? "nothing" : permissions.map((permission) => PERMISSIONS[permission]).join(", ");
}

/** What a role adds to reading. */
export function describeRole(role: RoleName): string {
  if (role === "admin") {
    return "everything";
  }
  const more = permissionsOf([role]).filter((permission) => permission !== "view");
  return describePermissions(more.length === 0 ? ["view"] : more);
}

/** What a key of these roles permits, if the roles of its member permit less. Null: all that its roles permit. */
export function describeRestriction(keyRoles: readonly string[], memberRoles: readonly string[]): string | null {
  const wanted = permissionsOf(keyRoles);
  const granted = new Set(permissionsOf(memberRoles));
  const permitted = wanted.filter((permission) => granted.has(permission));
  return permitted.length === wanted.length ? null : describePermissions(permitted);
}

const OWN_ROLE = /^[a-z][a-z0-9_-]{0,63}$/;
const MOST_ROLES = 20;

/** Roles of the organisation's own, as they are typed: with commas or spaces between them. */
export function splitOwnRoles(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ""))];
}

export interface RoleValues {
  roles: string[];
  ownRoles: string;
}

/** The fields of a form that chooses roles. */
export const roleFields = {
  roles: z.array(z.string()),
  ownRoles: z.string(),
};

/** Reports what is wrong with the chosen roles. Null: nothing. */
export function findRoleProblem({
  roles,
  ownRoles,
}: RoleValues): { path: "roles" | "ownRoles"; message: string } | null {
  const own = splitOwnRoles(ownRoles);
  const wrong = own.find((name) => !OWN_ROLE.test(name));
  if (wrong !== undefined) {
    return {
      path: "ownRoles",
      message: `“${wrong}” is not valid. A role starts with a small letter, then has small letters, digits, _ or -.`,
    };
  }
  if (roles.length + own.length === 0) {
    return { path: "roles", message: "Choose a role." };
  }
  return roles.length + own.length > MOST_ROLES
    ? { path: "ownRoles", message: `Choose ${MOST_ROLES} roles or fewer.` }
    : null;
}

export function toRoleValues(roles: readonly string[]): RoleValues {
  return { roles: roles.filter(isKnown), ownRoles: roles.filter((role) => !isKnown(role)).join(", ") };
}

export function fromRoleValues({ roles, ownRoles }: RoleValues): string[] {
  return [...new Set([...roles, ...splitOwnRoles(ownRoles)])];
}
