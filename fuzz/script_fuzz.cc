// Scripts of any bytes end, within the limits of memory and steps, and leave the interpreter
// usable.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/script_interpreter.h"
#include "server/sha1.h"

namespace basalt::server {
namespace {

/// Answers with bytes of the script, so that replies are parsed, too.
class TextHost final : public ScriptHost {
 public:
  void RunCommand(std::span<const std::string_view> args, Reply& reply) override {
    reply.Raw(args.front());
  }
  bool MayRun(std::span<const std::string_view> /*args*/) override { return false; }
};

constexpr ScriptLimits kLimits{
    .memory_bytes = 4 << 20, .steps = 200'000, .time = std::chrono::seconds(20)};

void RunOnce(ScriptInterpreter& interpreter, std::string_view text) {
  TextHost host;
  std::string out;
  Reply reply(&out, 1 << 20);
  const std::string_view keys[] = {"k"};
  interpreter.Run({Sha1Hex(text), text, keys, keys}, host, reply);
  BASALT_CHECK(interpreter.used_bytes() <= kLimits.memory_bytes);
  BASALT_CHECK(out.size() <= 1 << 20);
}

}  // namespace
}  // namespace basalt::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace basalt::server;
  static std::unique_ptr<ScriptInterpreter> interpreter;
  if (interpreter == nullptr || interpreter->is_worn()) {
    interpreter = ScriptInterpreter::Create(kLimits);
  }
  RunOnce(*interpreter, {reinterpret_cast<const char*>(data), size});
  TextHost host;
  std::string out;
  Reply reply(&out, 100);
  interpreter->Run({"one", "return 1", {}, {}}, host, reply);
  BASALT_CHECK(out == ":1\r\n");
  return 0;
}
