"use strict";
// Loads the page again, now from this site, so that the browser sends the cookie that it withheld. What the network's
// page gives is in the fragment, which must survive, and which would keep an equal address from being loaded.
location.replace(location.pathname + "?again" + location.hash);
