// Imports the definitions of all actions, so that the registry is complete whichever page is open.
import "./global";
import "../pages/device/actions";
import "../pages/health/actions";
import "../pages/inbox/actions";
import "../pages/new-session/actions";
import "../pages/policy/actions";
import "../pages/schedules/actions";
import "../pages/session/actions";
import "../pages/sessions/actions";
import "../pages/settings/actions";
import "../pages/usage/actions";
