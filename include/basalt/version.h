#pragma once

/* The version of the headers, for C and C++. basalt_version() in basalt/c.h gives that of the
 * linked library. */

#define BASALT_VERSION_MAJOR 0
#define BASALT_VERSION_MINOR 1
#define BASALT_VERSION_PATCH 0
/* As text. */
#define BASALT_VERSION "0.1.0"
