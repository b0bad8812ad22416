// Edits a line with libedit, and adds pastes as one entry, Ctrl-C, resizing and the usual keys.
#include "cli/terminal/line_editor.h"

#include <histedit.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cwchar>
#include <utility>

#include "cli/terminal/charset.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "gguf/utf8.h"

namespace cli {
namespace {

constexpr int kHistorySize = 1000;
// Asks the terminal to mark pasted text (bracketed paste).
constexpr const char* kMarkedPastes = "\033[?2004h";
constexpr const char* kPlainPastes = "\033[?2004l";
constexpr const wchar_t* kPasteEnds = L"\033[201~";

// Replaces a character that joins emoji or modifies the one before: blanks, as many columns as
// libedit counts.
std::string_view InPlaceOf(char32_t code) {
  if (code == 0x200D || code == 0xFE0F) return " ";           // a joiner, "as an emoji"
  return code >= 0x1F3FB && code <= 0x1F3FF ? "\u3000" : "";  // colours of skin
}

volatile std::sig_atomic_t resized = 0;    // written by signal handlers
volatile std::sig_atomic_t continued = 0;  // ... after Ctrl-Z and fg
pthread_t reader;                          // the thread that waits for keys

// The system may choose any thread for a signal, but only the reader's own ends its wait.
bool IsReader(int signal) {
  if (pthread_equal(pthread_self(), reader) != 0) return true;
  pthread_kill(reader, signal);
  return false;
}

}  // namespace

class LineEditor::Terminal {
 public:
  explicit Terminal(Completions completions) : completions_(std::move(completions)) {
    EditLine* const el = editor_.get();
    el_set(el, EL_CLIENTDATA, this);
    el_set(el, EL_EDITOR, "emacs");
    el_set(el, EL_SIGNAL, 0);
    el_set(el, EL_GETCFN, &ReadKey);
    el_wset(el, EL_PROMPT_ESC, &Prompt, L'\1');
    el_wset(el, EL_HIST, &history_w, history_.get());
    HistEventW event;
    history_w(history_.get(), &event, H_SETSIZE, kHistorySize);
    history_w(history_.get(), &event, H_SETUNIQUE, 1);

    el_wset(el, EL_ADDFN, L"pronk-interrupt", L"Cancel the entry", &Interrupt);
    el_wset(el, EL_ADDFN, L"pronk-paste", L"Insert pasted text", &Paste);
    el_wset(el, EL_ADDFN, L"pronk-newline", L"Insert a line feed", &InsertNewline);
    el_wset(el, EL_ADDFN, L"pronk-complete", L"Complete a command", &Complete);
    Bind("^C", "pronk-interrupt");
    Bind("\\e[200~", "pronk-paste");
    Bind("\\e\\r", "pronk-newline");  // Alt-Enter
    Bind("\\e\\n", "pronk-newline");
    Bind("^I", "pronk-complete");
    Bind("^R", "em-inc-search-prev");
    Bind("^W", "ed-delete-prev-word");
    Bind("\\e[3~", "ed-delete-next-char");
    Bind("\\e[1~", "ed-move-to-beg");
    Bind("\\e[4~", "ed-move-to-end");
    Bind("\\e[1;5D", "ed-prev-word");  // Ctrl and an arrow
    Bind("\\e[1;5C", "em-next-word");
    el_source(el, nullptr);  // ~/.editrc

    reader = pthread_self();
    // Without SA_RESTART, so that a signal ends the wait for a key.
    struct sigaction action = {};
    action.sa_handler = [](int signal) {
      if (IsReader(signal)) resized = 1;
    };
    sigaction(SIGWINCH, &action, nullptr);
    action.sa_handler = [](int signal) {
      if (IsReader(signal)) continued = 1;
    };
    sigaction(SIGCONT, &action, nullptr);
  }

  Result Read(const std::string& prompt, std::string& line) {
    // \1 marks text without width, which libedit attaches to the next character. So a space, in
    // which no weight is seen, follows the last such text.
    const std::string word = prompt.substr(0, prompt.find_last_not_of(' ') + 1),
                      spaces = prompt.substr(word.size());
    const bool is_bold = HasColour(STDERR_FILENO) && !spaces.empty();
    prompt_ = ToWide(is_bold ? "\1\033[1m\1" + word + "\1\033[0m\1" + spaces : prompt);
    prompt_columns_ = prompt.size();
    interrupted_ = false;
    if (std::exchange(resized, 0) != 0) el_resize(editor_.get());
    const KeyboardGuard guard(kPlainPastes);
    std::fputs(kMarkedPastes, out_.get());
    // libedit would show the prompt first, and text typed meanwhile would appear twice.
    el_set(editor_.get(), EL_PREP_TERM, 1);
    int n = 0;
    const wchar_t* const read = el_wgets(editor_.get(), &n);
    if (read == nullptr) std::fputs("\n", out_.get());
    Show();
    if (interrupted_) line = given_up_;
    if (interrupted_) return Result::kInterrupted;
    if (read == nullptr) return Result::kEnd;
    line = FromWide(std::wstring_view(read, static_cast<size_t>(n)));
    if (line.ends_with('\n')) line.pop_back();
    return Result::kLine;
  }

  void Remember(const std::string& entry) {
    HistEventW event;
    history_w(history_.get(), &event, H_ENTER, ToWide(entry).c_str());
  }

 private:
  // libedit calls these with an EditLine whose client data is our Terminal.
  static Terminal& Of(EditLine* el) {
    Terminal* terminal = nullptr;
    el_get(el, EL_CLIENTDATA, &terminal);
    return *terminal;
  }
  static const wchar_t* Prompt(EditLine* el) { return Of(el).prompt_.c_str(); }

  // Returns 1 and a character, 0 at the end of the input, -1 on Ctrl-C.
  int ReadCharacter(wchar_t* character) {
    std::mbstate_t state{};
    while (!Interrupted()) {
      Show();
      char byte = 0;
      const ssize_t n = read(STDIN_FILENO, &byte, 1);
      if (n == 0) return 0;
      if (n < 0 && errno != EINTR) return -1;
      if (n < 0) {  // a signal
        if (!Interrupted()) Redraw();
        continue;
      }
      const size_t used = std::mbrtowc(character, &byte, 1, &state);
      if (used <= 1) return 1;
      if (used == static_cast<size_t>(-1)) state = {};  // invalid bytes are dropped
    }
    return -1;
  }

  // ReadCharacter() as input for libedit; a Ctrl-C that came as a signal becomes a key, once.
  static int ReadKey(EditLine* el, wchar_t* key) {
    const int n = Of(el).ReadCharacter(key);
    if (n >= 0 || !Interrupted() || Of(el).interrupted_) return n;
    *key = L'\3';
    return 1;
  }

  // The typed text stays on the screen, marked as given up.
  static unsigned char Interrupt(EditLine* el, wint_t) {
    Of(el).interrupted_ = true;
    const LineInfoW* const info = el_wline(el);
    Of(el).given_up_ = FromWide({info->buffer, info->lastchar});
    el_cursor(el, static_cast<int>(info->lastchar - info->cursor));
    el_winsertstr(el, L"^C");
    el_wpush(el, L"\n");
    return CC_REFRESH;
  }

  // Writes the line at once, since a line drawn byte by byte flickers. Emoji families are split
  // into their members: libedit counts each member's columns, terminals the family's.
  void Show() {
    std::fflush(out_.get());
    std::string shown;
    for (const auto& [code, bytes] : gguf::Characters({drawn_.text, drawn_.size})) {
      const std::string_view other = InPlaceOf(code);
      shown += other.empty() ? bytes : other;
    }
    std::fwrite(shown.data(), 1, shown.size(), stderr);
    std::rewind(out_.get());
  }

  // Called after a signal that may have changed the screen.
  void Redraw() {
    if (std::exchange(continued, 0) != 0) {
      // The shell has changed the terminal's mode; libedit does not know.
      el_set(editor_.get(), EL_PREP_TERM, 0);
      el_set(editor_.get(), EL_PREP_TERM, 1);
    }
    if (std::exchange(resized, 0) != 0) {
      // libedit draws from the cursor on and would leave the old text.
      const size_t rows = RowsAboveCursor();
      if (rows > 0) std::fprintf(out_.get(), "\033[%zuA", rows);
      // Clears this row, then all below. Terminals keep text that is cleared from the first row on.
      std::fputs("\r\033[K\0337\033[B\033[J\0338", out_.get());
      el_resize(editor_.get());
    }
    el_set(editor_.get(), EL_REFRESH);
  }

  // The entry's rows above the cursor, after the terminal rewrapped its lines for another width.
  size_t RowsAboveCursor() const {
    winsize size = {};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 0;
    size_t row = 0, column = prompt_columns_;
    const LineInfoW* const info = el_wline(editor_.get());
    for (const wchar_t* c = info->buffer; c != info->cursor; ++c) {
      const int width = InPlaceOf(static_cast<char32_t>(*c)) == " " ? 1 : wcwidth(*c);
      column += *c == L'\t' ? 8 - column % 8 : width < 0 ? 2 : static_cast<size_t>(width);
      if (*c != L'\n' && column < size.ws_col) continue;
      ++row;
      column = 0;
    }
    return row;
  }

  static unsigned char Paste(EditLine* el, wint_t) {
    std::wstring text;
    wchar_t last = 0;
    for (wchar_t c = 0; !text.ends_with(kPasteEnds) && Of(el).ReadCharacter(&c) == 1; last = c) {
      if (c == L'\r' || (c == L'\n' && last != L'\r')) {
        text += L'\n';  // lines end in a carriage return, a line feed or both
      } else if (c >= L' ' || c == L'\t' || c == kPasteEnds[0]) {
        text += c;
      }
    }
    if (text.ends_with(kPasteEnds)) text.resize(text.size() - std::wcslen(kPasteEnds));
    std::erase(text, kPasteEnds[0]);
    if (text.ends_with(L'\n')) text.pop_back();  // the end of a copied line
    return el_winsertstr(el, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  static unsigned char InsertNewline(EditLine* el, wint_t) {
    return el_winsertstr(el, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
  }

  // Completes as far as all matching completions agree; shows them where they differ at once.
  static unsigned char Complete(EditLine* el, wint_t) {
    const LineInfoW* const info = el_wline(el);
    const std::string typed = FromWide({info->buffer, info->cursor});
    std::vector<std::string> matching;
    if (!typed.empty()) matching = Of(el).completions_(typed);
    std::erase_if(matching, [&](const auto& one) { return !one.starts_with(typed); });
    if (matching.empty()) return CC_ERROR;
    std::string common = matching.front();
    for (const std::string& one : matching) {
      while (!one.starts_with(common)) common.pop_back();
    }
    if (common.size() > typed.size()) {
      el_winsertstr(el, ToWide(common.substr(typed.size())).c_str());
      return CC_REFRESH;
    }
    // libedit redraws from the row where it assumes the cursor.
    if (matching.size() == 1 || Of(el).RowsAboveCursor() > 0) return CC_ERROR;
    const size_t word = typed.rfind(' ') + 1;  // 0 if there is no space
    std::string list;
    for (const std::string& one : matching) list += one.substr(word) + "  ";
    constexpr size_t kMostShown = 2000;  // bytes
    if (list.size() > kMostShown) list = std::to_string(matching.size()) + " are possible";
    WordWrapper wrapper;
    const size_t columns = Columns(STDERR_FILENO);
    list = wrapper.Push(ForTerminal(list), columns) + wrapper.Finish(columns);
    for (size_t at = 0; (at = list.find('\n', at)) != std::string::npos; at += 2)
      list.insert(at, "\r");
    std::fprintf(Of(el).out_.get(), "\r\n%s\r\n", list.c_str());
    return CC_REDISPLAY;
  }

  void Bind(const char* keys, const char* function) {
    el_set(editor_.get(), EL_BIND, keys, function, nullptr);
  }

  Completions completions_;
  std::wstring prompt_;
  size_t prompt_columns_ = 0;
  bool interrupted_ = false;  // Ctrl-C ended this entry
  std::string given_up_;      // its typed text
  // Output of libedit; Show() takes it from there.
  struct Drawn {
    char* text = nullptr;
    size_t size = 0;  // bytes
    ~Drawn() { std::free(text); }
  } drawn_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> out_{open_memstream(&drawn_.text, &drawn_.size),
                                                       std::fclose};
  std::unique_ptr<HistoryW, void (*)(HistoryW*)> history_{history_winit(), history_wend};
  std::unique_ptr<EditLine, void (*)(EditLine*)> editor_{
      el_init_fd("pronk", stdin, out_.get(), out_.get(), STDIN_FILENO, STDERR_FILENO,
                 STDERR_FILENO),
      el_end};
};

LineEditor::LineEditor(Completions completions) {
  if (IsTerminal(0) && HasEscapes(2)) {
    terminal_ = std::make_unique<Terminal>(std::move(completions));
  }
}

LineEditor::~LineEditor() = default;

LineEditor::Result LineEditor::Read(const std::string& prompt, std::string& line) {
  if (terminal_) return terminal_->Read(prompt, line);
  if (IsTerminal(0)) std::fputs(prompt.c_str(), stderr);
  line.clear();
  int c = 0;
  while ((c = std::getc(stdin)) != EOF && c != '\n') {
    line += static_cast<char>(c);
    if (line.size() > kMaxEntryBytes) {
      throw engine::Error("stdin: a line is longer than ", kMaxEntryBytes, " bytes");
    }
  }
  if (line.ends_with('\r')) line.pop_back();
  if (std::exchange(is_first_, false)) DropByteOrderMark("stdin", line);
  if (c == EOF && (line.empty() || Interrupted())) {
    std::clearerr(stdin);
    if (IsTerminal(0)) std::fputs("\n", stderr);
    line.clear();
    return Interrupted() ? Result::kInterrupted : Result::kEnd;
  }
  return Result::kLine;
}

void LineEditor::Remember(const std::string& entry) {
  if (terminal_) terminal_->Remember(entry);
}

}  // namespace cli
