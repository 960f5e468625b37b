#include "cmd/norma/prepare.h"

#include <fmt/core.h>

#include <array>
#include <utility>

#include "lib/agent/environment.h"
#include "lib/base/text.h"
#include "lib/chat/end_reason.h"
#include "lib/io/files.h"
#include "lib/io/process.h"
#include "lib/llm/proxy.h"

namespace norma::cmd {
namespace {

constexpr uint64_t kKeyBytesMax = 64 << 10;
// Stands in for a key where nothing is sent.
constexpr std::string_view kReplayKey = "norma-replay-needs-no-key";

constexpr std::array<std::string_view, 6> kProxyVariables = {
    "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"};

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  for (size_t n = 0; n < text.size(); ++n) {
    const bool has_two = text[n] == '%' && n + 2 < text.size() && HexValue(text[n + 1]) >= 0 &&
                         HexValue(text[n + 2]) >= 0;
    if (has_two) {
      out += static_cast<char>(HexValue(text[n + 1]) * 16 + HexValue(text[n + 2]));
      n += 2;
    } else {
      out += text[n];
    }
  }
  return out;
}

using Secrets = std::vector<std::pair<std::string, std::string>>;

// user:password as it stands in the URL, as it is sent, and the password alone in both forms.
void AddProxySecrets(std::string_view proxy, Secrets& secrets) {
  std::string url(proxy);
  if (url.find("://") == std::string::npos) url = "http://" + url;
  const std::string written = llm::ProxyCredentials(url);
  for (const std::string& form : {written, PercentDecode(written)}) {
    const size_t colon = form.find(':');
    if (colon == std::string::npos || colon + 1 == form.size()) continue;
    secrets.emplace_back("PROXY_PASSWORD", form);
    secrets.emplace_back("PROXY_PASSWORD", form.substr(colon + 1));
  }
}

std::string LedgerPath(const spec::RunSpec& spec, const std::string& cwd,
                       const std::string& run_id) {
  return CleanPath(JoinPath(cwd, ReplaceAll(spec.ledger.path, "{run}", run_id)));
}

std::string FindRipgrep(const spec::RunSpec& spec, const agent::Environment& environment) {
  const std::string disabled = agent::Lookup(environment, "NORMA_DISABLE_RIPGREP").value_or("");
  if (spec.tools.ripgrep == "never" || !(disabled.empty() || disabled == "0")) return "";
  return FindProgram("rg", agent::Lookup(environment, "PATH").value_or(""));
}

}  // namespace

int ExitOf(const Error& error, int signal) {
  switch (error.code) {
    case Code::kTimeout:
      return ExitCodeOf(EndReason::kTimeout);
    case Code::kCancelled:
      return ExitCodeOf(EndReason::kAbortedStreaming, signal);
    case Code::kInternal:
      return ExitCodeOf(EndReason::kInternal);
    default:
      return ExitCodeOf(EndReason::kUsage);
  }
}

Result<ledger::Redactor> RedactorFor(const spec::RunSpec& spec, const llm::ProviderConfig& provider,
                                     const agent::Environment& environment) {
  Secrets secrets;
  const std::string& key = provider.api_key;
  if (!key.empty()) secrets.emplace_back(agent::KeyVariable(spec), key);
  for (const std::string& name : agent::SecretNames(spec, environment)) {
    const auto value = agent::Lookup(environment, name);
    if (value.has_value() && *value != key) secrets.emplace_back(name, *value);
  }
  AddProxySecrets(provider.proxy, secrets);
  for (const std::string_view name : kProxyVariables) {
    AddProxySecrets(agent::Lookup(environment, name).value_or(""), secrets);
  }
  return ledger::Redactor::Make(secrets, spec.redact.patterns);
}

Result<agent::RunInput> BuildInput(const LoadedSpec& spec, ProcessState& process, bool replayed) {
  const spec::RunSpec& run_spec = spec.loaded.spec;
  std::optional<std::string> key_text;
  if (!run_spec.model.api_key_file.empty()) {
    NORMA_ASSIGN(key_text, ReadRegularFile(run_spec.model.api_key_file, kKeyBytesMax));
  }
  const std::string variable = agent::KeyVariable(run_spec);
  if (replayed && !key_text.has_value() &&
      agent::Lookup(process.environment, variable).value_or("").empty()) {
    key_text = kReplayKey;
  }
  agent::RunInput input;
  NORMA_ASSIGN(input.provider, agent::ProviderFor(run_spec, process.environment, key_text));
  input.spec = &run_spec;
  input.version = NORMA_VERSION;
  input.run_id = process.NewRunId();
  input.cwd = spec.cwd;
  input.ledger_path = LedgerPath(run_spec, spec.cwd, input.run_id);
  input.temp_folder = agent::Lookup(process.environment, "TMPDIR").value_or("/tmp");
  input.host = process.host;
  input.environment = process.environment;
  input.protected_paths = {spec.spec_path};
  input.ripgrep = FindRipgrep(run_spec, process.environment);
  input.started = process.started;
  return input;
}

Result<Network> OpenNetwork(const std::optional<std::string>& record,
                            const std::optional<std::string>& replay, const spec::RunSpec& spec,
                            const std::string& cwd, const ledger::Redactor& redactor) {
  const Redact redact = [&redactor](std::string_view text) { return redactor.Clean(text); };
  Network network;
  if (replay.has_value()) {
    NORMA_ASSIGN(network.tape, ReplayTape::Open(CleanPath(JoinPath(cwd, *replay)), redact));
    network.transport = NewReplayTransport(*network.tape, SystemClock());
  } else if (record.has_value()) {
    NORMA_ASSIGN(network.recording, Recording::Open(CleanPath(JoinPath(cwd, *record)), redact));
    network.curl = NewCurlTransport(SystemClock());
    network.transport = NewRecordTransport(*network.curl, *network.recording);
  } else {
    network.transport = NewCurlTransport(SystemClock());
  }
  if (spec.model.rate_limit.has_value()) {
    const spec::RateLimit& limit = *spec.model.rate_limit;
    network.limiter = std::make_unique<llm::RateLimiter>(
        llm::RateLimit{limit.per_second, limit.per_minute, static_cast<double>(limit.burst)},
        SystemClock());
  }
  return network;
}

}  // namespace norma::cmd
