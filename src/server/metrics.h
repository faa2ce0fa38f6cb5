#pragma once

#include <string>

#include "server/hub.h"

namespace basalt::server {

/// The server's and the database's figures in Prometheus' text format.
std::string MetricsText(Hub& hub);

}  // namespace basalt::server
