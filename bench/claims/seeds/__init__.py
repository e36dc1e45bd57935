"""Claims that each requirement holds, also where no other group has one."""
