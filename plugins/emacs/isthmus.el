;;; isthmus.el --- Agent CLIs see this Emacs as their IDE  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience, processes

;;; Commentary:

;; With `isthmus-mode' every agent CLI (Gemini CLI, Claude Code, Qwen Code, Isthmus itself) that runs in one of your
;; projects sees which files you have open, where your cursor is and what you have selected, gets the diagnostics of
;; Flymake or Flycheck, and shows you its edits side by side before it writes them.
;;
;;   (load "/path/to/isthmus.el")       ; `isthmus plugin' prints the path
;;   (isthmus-mode 1)
;;
;; In a review: C-c C-c or C-x C-s (:w under Evil) accepts what is in the buffer, with your edits; C-c C-k, or killing
;; the buffer, rejects; C-c C-d and C-c C-a reject and accept single hunks.  The mode line counts the reviews that wait: Isthmus:1.
;;
;; Agents that do not ask write files without a review.  The mode line counts these files, too: Isthmus~3.  M-x
;; isthmus-changes lists them, to keep or undo; see isthmus-changes.el, which belongs beside this file.
;;
;; Agents can also run in a terminal inside Emacs: M-x isthmus-agent-start; see isthmus-agent.el, which belongs beside
;; this file.  For keys: (global-set-key (kbd "C-c i") 'isthmus-command-map)
;;
;; How it works: it starts `isthmus companion --editor stdio' and speaks JSON-RPC with it, framed as in the Language
;; Server Protocol; docs/reference/editor-port.md describes the messages.  They are handled from timers, never in the
;; middle of a command.  Nothing here waits for the companion, and no request of an agent can make Emacs ask you
;; something (`inhibit-interaction').  A file is written only on a request to save one that you have open.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'project)
(require 'ring)
(require 'subr-x)
(require 'url-util)

(declare-function flymake-diagnostics "flymake")
(declare-function flymake-diagnostic-beg "flymake")
(declare-function flymake-diagnostic-end "flymake")
(declare-function flymake-diagnostic-type "flymake")
(declare-function flymake-diagnostic-text "flymake")
(declare-function flymake-diagnostic-data "flymake")
(declare-function flymake-diagnostic-backend "flymake")
(declare-function flymake--lookup-type-property "flymake")
(declare-function flymake-start "flymake")
(declare-function flymake-running-backends "flymake")
(declare-function flymake-reporting-backends "flymake")
(declare-function flycheck-error-region-for-mode "ext:flycheck")
(declare-function flycheck-error-level "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-error-checker "ext:flycheck")
(declare-function flycheck-error-id "ext:flycheck")
(declare-function flycheck-buffer "ext:flycheck")
(declare-function flycheck-running-p "ext:flycheck")
(declare-function smerge-refine-regions "smerge-mode")
(declare-function ediff-buffers "ediff")
(declare-function ediff-really-quit "ediff-util")
(declare-function warning-numeric-level "warnings")
(declare-function isthmus-changes "isthmus-changes")
(declare-function evil-ex-p "ext:evil-ex")
(declare-function evil-write "ext:evil-commands")
(declare-function evil-write-all "ext:evil-commands")
(declare-function evil-save-and-quit "ext:evil-commands")
(declare-function evil-add-command-properties "ext:evil-common")
(declare-function evil-define-minor-mode-key "ext:evil-core")
(defvar evil-ex-argument)
(defvar evil-ex-bang)
(defvar evil-ex-range)
(defvar flycheck-current-errors)
(defvar vc-follow-symlinks)
(defvar diff-command)

(defgroup isthmus nil
  "Agent CLIs see this Emacs as their IDE."
  :group 'tools
  :prefix "isthmus-")

(defcustom isthmus-program "isthmus"
  "The program Isthmus: a name in the variable `exec-path', or an absolute one.
Or a list of it and its first arguments, such as (\"uvx\" \"isthmus\")."
  :type '(choice string (repeat string)))

(defcustom isthmus-arguments nil
  "More arguments for the companion, such as \"--no-selection\"."
  :type '(repeat string))

(defcustom isthmus-workspace-folders nil
  "Folders that agents may work in.
Nil means the projects of the open files, and the folder Emacs was started in."
  :type '(repeat directory))

(defcustom isthmus-restart-delays '(0.1 1 2 4 8 16 30)
  "Seconds to wait before each restart of a companion that crashed.
After the last one there are no more.  For a companion that ran for a
minute, the delays begin anew."
  :type '(repeat number))

(defcustom isthmus-reload-files t
  "Whether open files are read again when an agent has written them.
Buffers with unsaved changes never are."
  :type 'boolean)

(defcustom isthmus-review-when-idle 1.0
  "Seconds without a key after which a review may take the window.
So your keys never go into an agent's edit by accident."
  :type 'number)

(defcustom isthmus-review-reading 2.0
  "Seconds after a review took the window in which it takes no keys.
Keys that you type then go to the window where you were."
  :type 'number)

(defcustom isthmus-review-layout nil
  "How a review is shown.
Nil means the file on disk and the proposal side by side, or one above the
other where the window is narrow.  `unified' is the proposal alone, with the
removed lines in it.  `ediff' starts Ediff on the two."
  :type '(choice (const :tag "Side by side where there is room" nil)
                 (const side-by-side) (const stacked) (const unified) (const ediff)))

(defcustom isthmus-changes-quiet 3.0
  "Seconds without a further write after which you are told what agents wrote.
Nil means that you are not told; the mode line counts the files all the same."
  :type '(choice number (const :tag "Never" nil)))

(defcustom isthmus-diff-opened-functions nil
  "Functions to call when a review of an agent's edit is there to be decided.
Each gets the path of the file."
  :type 'hook)

(defcustom isthmus-diff-closed-functions nil
  "Functions to call when a review is closed.
Each gets the path of the file and how it ended, a symbol: `accepted' or
`rejected' here, or `closed': it was answered elsewhere or withdrawn."
  :type 'hook)

(defcustom isthmus-agent-attached-functions nil
  "Functions to call when an agent connected to this Emacs.
Each gets the agent's name."
  :type 'hook)

(defcustom isthmus-agent-detached-functions nil
  "Functions to call when an agent has left.
Each gets the agent's name."
  :type 'hook)

(defface isthmus-review-removed '((t :inherit diff-removed :extend t))
  "Lines on disk that are not in the proposal.")

(defface isthmus-review-added '((t :inherit diff-added :extend t))
  "Lines of the proposal that are not in the file on disk.")

(defface isthmus-review-gap '((t :inherit shadow :extend t))
  "Filler beside lines that only the other side has.")

(define-error 'isthmus-error "Isthmus")

(defvar isthmus--active nil "The buffer of the file that has, or had last, the focus.")
(defvar isthmus--active-window nil "The window in which it has, or had, the focus.")
(defvar isthmus--tell-timer nil "Timer that reports a change to the companion; nil: there is none to report.")
(defvar isthmus--folders nil "The workspace folders as the companion knows them.")
(defvar isthmus--reviews nil "The undecided reviews, newest first.")
(defvar isthmus--changed-files 0 "Number of files that agents wrote and the user has not decided on.")
(defvar isthmus--questions nil "The buffers of open questions.")
(defvar isthmus--tools nil "Tools for agents: (NAME DESCRIPTION PARAMETERS FUNCTION).")
(defvar isthmus--variables nil "Environment variables that the companion set: (NAME . FORMER-VALUE).")
(defvar-local isthmus--focused-at nil "When this buffer last had the focus, as `float-time'.")
(defvar-local isthmus--root 'unknown "The project of this buffer's folder; nil: none.")
(defvar-local isthmus--line-count nil "(TICK . COUNT): the lines at this modification tick.")
(defvar-local isthmus--review nil "The review that this buffer is a side of.")
(defvar-local isthmus--header nil "The header line of this side of a review.")
(defvar-local isthmus--conflict nil "Whether the user knows that the file changed under unsaved changes.")
(defvar-local isthmus--question nil "The request that this buffer asks the user about.")
(defvar-local isthmus--takes-keys t "Whether this review takes keys, because the user could read it.")
(put 'isthmus--takes-keys 'risky-local-variable t) ; so that the faces in the header line stay

(defmacro isthmus--without-questions (&rest body)
  "Run BODY; if it would ask the user something, signal an error instead."
  (declare (indent 0) (debug t))
  `(cl-letf (((symbol-function 'sit-for) #'always))
     (condition-case nil
         (let ((inhibit-interaction t)
               (vc-follow-symlinks nil)
               (large-file-warning-threshold nil)
               (enable-local-variables (and enable-local-variables :safe))
               (enable-local-eval nil)
               (find-file-suppress-same-file-warnings t))
           ,@body)
       (inhibited-interaction
        (signal 'isthmus-error (list "Emacs would have to ask the user something first; the user has to do this"))))))

(defun isthmus--fail (format &rest arguments)
  "Refuse a request with a text for the agent: FORMAT with ARGUMENTS."
  (signal 'isthmus-error (list (apply #'format format arguments))))

(defconst isthmus--reordering "[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]"
  "Matches a character that reorders the text around it on the screen.")

(defun isthmus--visible (text)
  "Return TEXT with escapes for the characters that reorder it.
Without them the name of a file could look like another one's."
  (replace-regexp-in-string
   isthmus--reordering (lambda (found) (format "\\u%04x" (aref found 0))) text t t))

(defun isthmus--run-functions (hook &rest arguments)
  "Call the functions of HOOK with ARGUMENTS soon, outside of what happens now.
What goes wrong in one of them keeps no other from being called."
  (dolist (function (let (functions)
                      (run-hook-wrapped hook (lambda (function) (push function functions) nil))
                      (nreverse functions)))
    (run-at-time 0 nil (lambda ()
                         (condition-case problem
                             (apply function arguments)
                           (error (isthmus--say "%s: %s: %s" hook function (error-message-string problem))))))))

(defun isthmus--say (format &rest arguments)
  "Tell the user FORMAT with ARGUMENTS."
  (message "Isthmus: %s" (isthmus--visible (apply #'format-message format arguments))))

;;;; JSON-RPC over the companion's standard input and output

(defconst isthmus--empty (make-hash-table) "An empty JSON object.")
(defconst isthmus--later (make-symbol "later") "What a handler returns that answers its request later.")
(defconst isthmus--longest-log 20000 "Characters of the companion's log that are kept.")

(defvar isthmus--process nil "The companion.")
(defvar isthmus--greeted nil "Whether the companion may be told things.")
(defvar isthmus--ready nil "Whether agents can find the companion.")
(defvar isthmus--queue nil "Messages that came in, newest first.")
(defvar isthmus--callbacks nil "What waits for an answer: (ID . FUNCTION of the result and the error).")
(defvar isthmus--last-id 0 "The id of our last request.")
(defvar-local isthmus--awaited nil "Bytes of the frame that is being received; nil: its header is not complete.")

(defun isthmus--unicode (text)
  "Return TEXT with U+FFFD for everything that is not Unicode.
These are bytes that could not be decoded, and lone surrogates."
  (if (multibyte-string-p text)
      (replace-regexp-in-string "[\xD800-\xDFFF\x3FFF80-\x3FFFFF]" "\xFFFD" text t t)
    (replace-regexp-in-string "[^[:ascii:]]" "\xFFFD" (string-to-multibyte text) t t)))

(defun isthmus--parse (text)
  "Parse the JSON TEXT: objects are plists, arrays lists, false and null nil."
  (condition-case nil
      (if (fboundp 'json-parse-string)
          (json-parse-string text :object-type 'plist :array-type 'list :null-object nil :false-object nil)
        (error "Emacs without JSON in C"))
    (error ; the parser in C refuses NUL
     (let ((json-object-type 'plist) (json-array-type 'list) (json-false nil) (json-null nil))
       (json-read-from-string text)))))

(defconst isthmus--most-recorded 400 "Messages that `isthmus-show-log' shows.")
(defconst isthmus--longest-recorded 1000 "Bytes of a message that are shown of it.")
(defconst isthmus--not-recorded
  (concat "\"\\(text\\|selectedText\\|proposed\\|result" ; texts of files
          "\\|[A-Z][A-Z0-9_]*\\|[a-z0-9]+_[a-z0-9_]*\\)\"" ; variables, some of which are secrets
          "\\( *: *\\)\"\\(?:[^\"\\]\\|\\\\.\\)*\\(?:\"\\|\\\\?\\'\\)")
  "Matches a member of a message whose value only the user may read.")
(defvar isthmus--recorded (make-ring isthmus--most-recorded) "The last messages: (TIME DIRECTION BYTES).")

(defun isthmus--record (direction bytes)
  "Record BYTES, a line of the companion's log or the JSON of a message.
DIRECTION is a short string.  Texts of files and secrets are left out."
  (let ((case-fold-search nil))
    (ring-insert isthmus--recorded
                 (list (float-time) direction
                       (replace-regexp-in-string
                        isthmus--not-recorded "\"\\1\"\\2\"...\""
                        (substring bytes 0 (min (length bytes) isthmus--longest-recorded)) t)))))

(defun isthmus--serialize (object)
  "Return OBJECT as JSON, in bytes."
  (encode-coding-string
   (if (fboundp 'json-serialize)
       (json-serialize object)
     (let ((json-false :false) (json-null :null))
       (json-encode object)))
   'utf-8 t))

(defun isthmus--send (message)
  "Send MESSAGE, an alist, to the companion, if there is one."
  (when (process-live-p isthmus--process)
    (let ((body (isthmus--serialize `((jsonrpc . "2.0") ,@message))))
      (isthmus--record "to companion  " body)
      (condition-case nil
          (process-send-string isthmus--process (format "Content-Length: %d\r\n\r\n" (length body)))
        (error nil))
      (condition-case nil
          (process-send-string isthmus--process body)
        (error nil))))) ; it has ended, which the sentinel handles

(defun isthmus--notify (method &optional params)
  "Send the companion the notification METHOD with PARAMS."
  (isthmus--send `((method . ,method) (params . ,(or params isthmus--empty)))))

(defun isthmus--request (method params callback)
  "Send the companion the request METHOD with PARAMS.
CALLBACK gets the result and the error, one of them nil."
  (let ((id (cl-incf isthmus--last-id)))
    (push (cons id callback) isthmus--callbacks)
    (isthmus--send `((id . ,id) (method . ,method) ,@(when params `((params . ,params)))))))

(defun isthmus--answer (id result)
  "Answer the request ID with RESULT."
  (isthmus--send `((id . ,id) (result . ,result))))

(defun isthmus--answer-error (id code text)
  "Answer the request ID with an error of CODE and TEXT."
  (isthmus--send `((id . ,id) (error . ((code . ,code) (message . ,(isthmus--unicode text)))))))

(defun isthmus--filter (process chunk)
  "Take CHUNK, which PROCESS wrote.
Whole messages are handled soon, outside of what Emacs is doing now."
  (when (buffer-live-p (process-buffer process))
    (with-current-buffer (process-buffer process)
      (goto-char (point-max))
      (insert chunk)
      (let (body)
        (while (setq body (isthmus--next-frame))
          (isthmus--record "from companion" body)
          (condition-case problem
              (push (isthmus--parse (decode-coding-string body 'utf-8)) isthmus--queue)
            (error (isthmus--log "a message that is no JSON: %S\n" problem)))
          (when (and isthmus--queue (null (cdr isthmus--queue)))
            (run-at-time 0 nil #'isthmus--handle-queue)))))))

(defun isthmus--next-frame ()
  "Take the body of the next frame out of the current buffer.
Nil when it is not complete."
  (unless isthmus--awaited
    (goto-char (point-min))
    (when (search-forward "\r\n\r\n" nil t)
      (let ((end (point)) (case-fold-search t))
        (goto-char (point-min))
        (setq isthmus--awaited
              (if (re-search-forward "^content-length: *\\([0-9]+\\)" end t) (string-to-number (match-string 1)) 0))
        (delete-region (point-min) end))))
  (when (and isthmus--awaited (>= (buffer-size) isthmus--awaited))
    (let ((end (+ (point-min) isthmus--awaited)))
      (setq isthmus--awaited nil)
      (delete-and-extract-region (point-min) end))))

(defun isthmus--handle-queue ()
  "Handle the messages that came in, in their order."
  (let ((messages (nreverse isthmus--queue)))
    (setq isthmus--queue nil)
    (save-current-buffer
      (dolist (message messages)
        (condition-case problem
            (isthmus--handle message)
          (error (isthmus--log "%S\n" problem)))))))

(defconst isthmus--handlers
  '(("workspace/workspaceFolders" . isthmus--on-workspace-folders)
    ("editor/openFiles" . isthmus--on-open-files)
    ("window/showDocument" . isthmus--on-show-document)
    ("editor/closeDocument" . isthmus--on-close-document)
    ("editor/reload" . isthmus--on-reload)
    ("editor/text" . isthmus--on-text)
    ("editor/saveDocument" . isthmus--on-save-document)
    ("editor/openDiff" . isthmus--on-open-diff)
    ("editor/closeDiff" . isthmus--on-close-diff)
    ("textDocument/diagnostic" . isthmus--on-diagnostic)
    ("workspace/diagnostic" . isthmus--on-workspace-diagnostic)
    ("window/showMessageRequest" . isthmus--on-question)
    ("editor/callTool" . isthmus--on-call-tool)
    ("window/showMessage" . isthmus--on-message)
    ("editor/setTerminalEnvironment" . isthmus--on-terminal-environment)
    ("companion/ready" . isthmus--on-ready)
    ("companion/agentsChanged" . isthmus--on-agents)
    ("companion/changesWritten" . isthmus--on-changes)
    ("$/cancelRequest" . isthmus--on-cancel))
  "Requests and notifications of the companion: (METHOD . FUNCTION).
FUNCTION gets the params and the id of the request, nil for a notification.")

(defun isthmus--handle (message)
  "Handle MESSAGE: a request, a notification or an answer."
  (let* ((id (plist-get message :id))
         (method (plist-get message :method))
         (handler (cdr (assoc method isthmus--handlers))))
    (cond
     ((null method)
      (when-let ((callback (assoc id isthmus--callbacks)))
        (setq isthmus--callbacks (delq callback isthmus--callbacks))
        (funcall (cdr callback) (plist-get message :result) (plist-get message :error))))
     ((null id)
      (when handler
        (funcall handler (plist-get message :params) nil)))
     ((null handler)
      (isthmus--answer-error id -32601 (format "Emacs does not know %s" method)))
     (t
      (condition-case problem
          (let ((result (funcall handler (plist-get message :params) id)))
            (unless (eq result isthmus--later)
              (isthmus--answer id result)))
        (isthmus-error (isthmus--answer-error id -32803 (cadr problem)))
        (error (isthmus--answer-error id -32803 (error-message-string problem))))))))

;;;; The life of the companion

(defvar isthmus--stopping nil "Whether the companion ends because it is told to.")
(defvar isthmus--attempts 0 "How many starts in a row came to nothing.")
(defvar isthmus--started-at nil "When the companion was started last, as `float-time'.")
(defvar isthmus--restart-timer nil "Starts the companion again.")

(defun isthmus--log (format &rest arguments)
  "Write FORMAT with ARGUMENTS into the log, the buffer *isthmus log*."
  (with-current-buffer (get-buffer-create "*isthmus log*")
    (let ((inhibit-read-only t))
      (save-excursion
        (goto-char (point-max))
        (insert (apply #'format format arguments))
        (when (> (buffer-size) (* 2 isthmus--longest-log))
          (delete-region (point-min) (- (point-max) isthmus--longest-log)))))))

(defun isthmus-show-log ()
  "Show the last messages between Emacs and the companion, and its log.
Texts of files, selections and secrets are left out, so that you may show it
to others; names of files are in it."
  (interactive)
  (with-current-buffer (get-buffer-create "*isthmus protocol*")
    (let ((inhibit-read-only t))
      (erase-buffer)
      (special-mode)
      (setq-local revert-buffer-function (lambda (&rest _) (isthmus-show-log)))
      (pcase-dolist (`(,time ,direction ,bytes) (reverse (ring-elements isthmus--recorded)))
        (insert (format-time-string "%T.%3N " time) direction " "
                (isthmus--visible (isthmus--unicode (decode-coding-string (string-trim-right bytes) 'utf-8))) "\n")))
    (pop-to-buffer (current-buffer))
    (goto-char (point-max))))

(defun isthmus--last-log-line ()
  "Return the last line that the companion wrote to its stderr, or nil."
  (when-let ((buffer (get-buffer "*isthmus log*")))
    (with-current-buffer buffer
      (car (last (split-string (buffer-string) "\n" t "[ \r]+"))))))

(defun isthmus--start-companion ()
  "Start the companion and greet it.
Signals `user-error' when there is no such program."
  (unless (executable-find (car (ensure-list isthmus-program)))
    (user-error "Isthmus: no program `%s'; install it (pip install isthmus), or set `isthmus-program'"
                (car (ensure-list isthmus-program))))
  (isthmus--cancel-restart)
  (let ((default-directory (file-name-as-directory (car (isthmus--workspace-folders))))
        (process-environment (isthmus--environment-without-ours))
        (process-connection-type nil)
        (log (make-pipe-process
              :name "isthmus log" :noquery t :buffer nil :coding 'utf-8
              :filter (lambda (_process text)
                        (isthmus--log "%s" text)
                        (isthmus--record "its log       " (encode-coding-string text 'utf-8)))
              :sentinel #'ignore)))
    (setq isthmus--greeted nil
          isthmus--ready nil
          isthmus--stopping nil
          isthmus--queue nil
          isthmus--callbacks nil
          isthmus--started-at (float-time)
          isthmus--process
          (make-process
           :name "isthmus" :noquery t :connection-type 'pipe :coding 'no-conversion
           :buffer (with-current-buffer (generate-new-buffer " *isthmus received*" t)
                     (set-buffer-multibyte nil)
                     (current-buffer))
           :command `(,@(ensure-list isthmus-program) "companion" "--editor" "stdio" ,@isthmus-arguments)
           :stderr log :filter #'isthmus--filter :sentinel #'isthmus--sentinel))
    (process-put isthmus--process 'isthmus-log log))
  (setq isthmus--folders (isthmus--workspace-folders))
  (isthmus--request
   "initialize"
   `((protocolVersion . 1)
     (editorInfo . ((name . "emacs") (displayName . "Emacs") (version . ,emacs-version) (processId . ,(emacs-pid))))
     (workspaceFolders . ,(isthmus--on-workspace-folders nil nil))
     (capabilities . ((diff . t) (open . t) (close . t) (text . t) (dirty . t) (diagnostics . t) (selection . t)
                      (save . t) (message . t) (confirm . t) (terminal . t) (reload . t)
                      (execute . "it has no notebooks; start the companion with --editor jupyter")))
     (tools . ,(vconcat (mapcar #'isthmus--describe-tool isthmus--tools)))
     (positionEncodings . ["utf-16"])
     (newlines . "exact"))
   (lambda (_result problem)
     (if problem
         (isthmus--say "the companion refuses this plugin: %s" (plist-get problem :message))
       (isthmus--notify "initialized")
       (setq isthmus--greeted t)
       (isthmus--changed)))))

(defun isthmus--environment-without-ours ()
  "Return `process-environment' without what a companion set for terminals."
  (let ((process-environment (copy-sequence (default-value 'process-environment))))
    (pcase-dolist (`(,name . ,former) isthmus--variables)
      (setenv name former))
    process-environment))

(defun isthmus--on-ready (params _id)
  "Tell the user that agents can find the companion, with what is in PARAMS.
The variables for terminals are set first: the request to set them comes
only after this message, and the user may open a terminal before."
  (isthmus--set-variables (plist-get params :environment))
  (setq isthmus--ready t)
  (force-mode-line-update t)
  (isthmus--say "agents can find this Emacs")
  (isthmus--ask-changes "written_wait" '((after . 0) (wait . 0)) ; from now on it tells of changes
                        (lambda (result _problem) (when result (isthmus--on-changes result nil)))))

(defvar isthmus--agents nil "The attached agents: (ID . NAME).")

(defun isthmus--on-agents (params _id)
  "Note which agents are attached, as PARAMS say."
  (isthmus--set-agents (mapcar (lambda (agent) (cons (plist-get agent :id) (plist-get agent :title)))
                               (plist-get params :agents))))

(defun isthmus--set-agents (agents)
  "Note that AGENTS are attached now, and tell the user's functions what is new."
  (let ((former isthmus--agents))
    (setq isthmus--agents agents)
    (dolist (agent agents)
      (unless (assoc (car agent) former)
        (isthmus--run-functions 'isthmus-agent-attached-functions (cdr agent))))
    (dolist (agent former)
      (unless (assoc (car agent) agents)
        (isthmus--run-functions 'isthmus-agent-detached-functions (cdr agent))))))

(defun isthmus-agents ()
  "Return the names of the attached agents, for a status line of your own."
  (mapcar #'cdr isthmus--agents))

(defun isthmus--sentinel (process _event)
  "Start the companion again if its PROCESS ended by itself."
  (unless (process-live-p process)
    (isthmus--sweep process)
    (when (eq process isthmus--process)
      (setq isthmus--process nil
            isthmus--greeted nil
            isthmus--ready nil)
      (isthmus--set-changed-files 0)
      (isthmus--set-agents nil)
      (mapc #'kill-buffer isthmus--questions)
      (isthmus--keep-reviews)
      (unless isthmus--stopping
        (isthmus--plan-restart process)))))

(defun isthmus--sweep (process)
  "Remove the buffer and the log process of PROCESS."
  (when (buffer-live-p (process-buffer process))
    (kill-buffer (process-buffer process)))
  (when-let ((log (process-get process 'isthmus-log)))
    (run-at-time 1 nil #'delete-process log))) ; its last lines are still coming

(defun isthmus--plan-restart (process)
  "Plan a restart after PROCESS crashed, or give up."
  (when (> (- (float-time) isthmus--started-at) 60)
    (setq isthmus--attempts 0))
  (let ((delay (nth isthmus--attempts isthmus-restart-delays))
        (code (process-exit-status process))
        (is-killed (eq (process-status process) 'signal))
        (attempt (cl-incf isthmus--attempts)))
    (run-at-time
     0.2 nil ; after its last lines have come
     (lambda ()
       (let* ((is-unknown (> code 255)) ; Emacs wrote to it before it learned that it had ended
              (words (and (not is-killed) (not is-unknown) (isthmus--last-log-line)))
              (how (concat (cond (is-unknown "has ended")
                                 (is-killed (format "was killed by signal %d" code))
                                 (t (format "ended with code %d" code)))
                           (if words (format " (%s)" words) ""))))
         (if delay
             (isthmus--say "the companion %s; it is started again in %s s" how delay)
           (display-warning
            'isthmus
            (format "The companion %s, %d times in a row.  M-x isthmus-start tries again; see the buffer %s."
                    how attempt "*isthmus log*"))))))
    (when delay
      (setq isthmus--restart-timer (run-at-time delay nil #'isthmus--restart)))))

(defun isthmus--restart ()
  "Start the companion again after a crash."
  (setq isthmus--restart-timer nil)
  (condition-case problem
      (isthmus--start-companion)
    (error (isthmus--say "%s" (error-message-string problem)))))

(defun isthmus--cancel-restart ()
  "Cancel a planned restart of the companion."
  (when isthmus--restart-timer
    (cancel-timer isthmus--restart-timer)
    (setq isthmus--restart-timer nil)))

(defun isthmus--stop-companion ()
  "Ask the companion to end, without waiting for it."
  (isthmus--cancel-restart)
  (when (process-live-p isthmus--process)
    (setq isthmus--stopping t)
    (isthmus--request "shutdown" nil #'ignore)
    (isthmus--notify "exit")
    (condition-case nil
        (process-send-eof isthmus--process)
      (error nil))
    (let ((process isthmus--process))
      (run-at-time 10 nil (lambda () (when (process-live-p process) (kill-process process))))))
  (setq isthmus--greeted nil
        isthmus--ready nil)
  (isthmus--set-changed-files 0)
  (pcase-dolist (`(,name . ,former) isthmus--variables)
    (isthmus--setenv name former))
  (setq isthmus--variables nil))

(defvar isthmus--quits nil "Whether Lisp quits Emacs now, and asks nothing more.")
(defvar isthmus--has-left nil "Whether the companion was waited for as Emacs quits.")

(defun isthmus--about-to-quit ()
  "Note that Emacs quits now, unless another question follows."
  (setq isthmus--quits t)
  (run-at-time 0 nil (lambda () (setq isthmus--quits nil))))

(defun isthmus--leave ()
  "Reject what is undecided and end the companion, because Emacs quits.
The companion keeps what the user typed.  It gets two seconds for that,
but only when Lisp quits Emacs: this also runs in the handler of a signal
that ends Emacs, where waiting is not allowed, not even while Emacs asks
whether to quit or already waits here."
  (dolist (review isthmus--reviews)
    (isthmus--notify "editor/didRejectDiff" (isthmus--id-and-text review)))
  (isthmus--set-reviews nil)
  (let ((process isthmus--process)
        (deadline (+ (float-time) 2)))
    (isthmus--stop-companion)
    (when (and (not isthmus--has-left) (or isthmus--quits (backtrace-frame 0 'kill-emacs)))
      (setq isthmus--has-left t)
      (while (and (process-live-p process) (< (float-time) deadline))
        (accept-process-output process 0.05)))))

(defvar isthmus-mode-map (make-sparse-keymap) "Has the menu of Isthmus, and no keys.")

;;;###autoload
(define-minor-mode isthmus-mode
  "Agent CLIs see this Emacs as their IDE.
The companion is started, and stops with Emacs."
  :global t
  :lighter (:eval (cond ((isthmus--anything-waits) "") (isthmus--ready " Isthmus") (t " Isthmus?"))) ; the count says it
  (if isthmus-mode
      (condition-case problem
          (progn
            (setq isthmus--attempts 0)
            (isthmus--watch #'add-hook)
            (isthmus--note-focus)
            (unless (and (process-live-p isthmus--process) (not isthmus--stopping))
              (isthmus--start-companion)))
        (error
         (setq isthmus-mode nil)
         (isthmus--watch #'remove-hook)
         (if after-init-time
             (signal (car problem) (cdr problem))
           (display-warning 'isthmus (error-message-string problem)))))
    (isthmus--watch #'remove-hook)
    (isthmus--stop-companion)
    (mapc #'kill-buffer isthmus--questions)
    (isthmus--keep-reviews)))

;;;###autoload
(defun isthmus-start ()
  "Let agent CLIs see this Emacs as their IDE."
  (interactive)
  (isthmus-mode 1))

(defun isthmus-stop ()
  "End what `isthmus-start' began."
  (interactive)
  (isthmus-mode -1))

(defun isthmus-status ()
  "Say whether agents can find this Emacs."
  (interactive)
  (isthmus--say
   (cond
    (isthmus--ready (concat "agents can find this Emacs; attached: "
                            (string-replace "%" "%%" (string-join (or (isthmus-agents) '("none")) ", "))
                            (if isthmus--reviews
                                "; reviews that wait for you: %d"
                              "; no review waits for you")
                            (if (> isthmus--changed-files 0)
                                (format "; files that agents wrote: %d (M-x isthmus-changes)" isthmus--changed-files)
                              "")))
    ((process-live-p isthmus--process) "the companion is starting")
    (isthmus--restart-timer "the companion crashed and is started again soon")
    (t "no companion runs; M-x isthmus-start"))
   (length isthmus--reviews)))

;;;; Paths, positions and texts

(defun isthmus--file-coding ()
  "Return the coding system of file names."
  (or file-name-coding-system default-file-name-coding-system 'utf-8))

(defun isthmus--uri (path)
  "Return the URI of PATH."
  (concat "file://"
          (unless (string-prefix-p "/" path) "/")
          (mapconcat (lambda (byte)
                       (if (or (<= ?a byte ?z) (<= ?A byte ?Z) (<= ?0 byte ?9) (memq byte (append "/-._~" nil)))
                           (string byte)
                         (format "%%%02X" byte)))
                     (encode-coding-string path (isthmus--file-coding) t)
                     "")))

(defun isthmus--path (uri)
  "Return the path of URI."
  (unless (string-match "\\`file://[^/]*\\(/.*\\)\\'" (or uri ""))
    (isthmus--fail "%S is not a file: URI" uri))
  (let ((path (decode-coding-string (url-unhex-string (match-string 1 uri) t) (isthmus--file-coding))))
    (when (file-remote-p path) ; agents choose paths, and access to such a path starts ssh or sudo
      (isthmus--fail "%s: for Emacs this is not a file on this machine" path))
    (if (memq system-type '(windows-nt ms-dos))
        (string-remove-prefix "/" path)
      path)))

(defun isthmus--is-regular (path)
  "Return non-nil if there is a regular file at PATH.
The function `file-regular-p' says no to names that are not UTF-8."
  (when-let ((attributes (file-attributes (file-truename path))))
    (eq (aref (file-attribute-modes attributes) 0) ?-)))

(defun isthmus--file-of (buffer)
  "Return the absolute path of the file in BUFFER.
Nil when it is no local file, or not for agents (such as a review)."
  (let ((path (buffer-local-value 'buffer-file-name buffer)))
    (and path
         (not (string-prefix-p " " (buffer-name buffer)))
         (not (buffer-local-value 'isthmus--review buffer))
         (not (file-remote-p path))
         (expand-file-name path))))

(defun isthmus--buffer-of (path)
  "Return the buffer in which the file PATH is open, or nil."
  (let ((buffer (find-buffer-visiting path)))
    (and buffer (isthmus--file-of buffer) buffer)))

(defun isthmus--file-buffers ()
  "Return the buffers of all open files."
  (seq-filter #'isthmus--file-of (buffer-list)))

(defun isthmus--position (place)
  "Return PLACE in the current buffer as 0-based line and UTF-16 character."
  (save-restriction
    (widen)
    (save-excursion
      (goto-char place)
      (let* ((inhibit-field-text-motion t)
             (start (line-beginning-position))
             (units (- place start)))
        (goto-char start)
        (while (progn (skip-chars-forward "^\U00010000-\U0010FFFF" place)
                      (< (point) place))
          (cl-incf units)
          (forward-char))
        `((line . ,(1- (line-number-at-pos place t))) (character . ,units))))))

(defun isthmus--place (position)
  "Return the place of POSITION, as of `isthmus--position', in this buffer.
The buffer is widened."
  (save-excursion
    (let ((inhibit-field-text-motion t)
          (units (plist-get position :character)))
      (goto-char (point-min))
      (forward-line (plist-get position :line))
      (let ((end (line-end-position)))
        (while (and (> units 0) (< (point) end))
          (cl-decf units (if (<= #x10000 (char-after) #x10FFFF) 2 1))
          (forward-char)))
      (point))))

(defun isthmus--range (start end)
  "Return the range from START to END in the current buffer."
  `((start . ,(isthmus--position start)) (end . ,(isthmus--position end))))

(defun isthmus--with-newlines (text coding)
  "Return the TEXT of a buffer as it is in a file with CODING."
  (let ((whole (pcase (coding-system-eol-type coding)
                 (1 (string-replace "\n" "\r\n" text))
                 (2 (string-replace "\n" "\r" text))
                 (_ text))))
    (if (eq (coding-system-base coding) 'utf-8-with-signature)
        (concat "\xFEFF" whole)
      whole)))

(defun isthmus--text-of (buffer)
  "Return the whole text of BUFFER as it would be in the file."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (isthmus--with-newlines (buffer-substring-no-properties (point-min) (point-max))
                              (or buffer-file-coding-system 'utf-8-unix)))))

(defun isthmus--language ()
  "Return LSP's name for the language of the current buffer."
  (or (get major-mode 'eglot-language-id)
      (let ((name (replace-regexp-in-string "\\(-ts\\)?-mode\\'" "" (symbol-name major-mode))))
        (or (cdr (assoc name '(("js" . "javascript") ("js2" . "javascript") ("js-jsx" . "javascriptreact")
                               ("rjsx" . "javascriptreact") ("tsx" . "typescriptreact") ("c++" . "cpp")
                               ("sh" . "shellscript") ("bash" . "shellscript") ("mhtml" . "html") ("gfm" . "markdown")
                               ("cperl" . "perl") ("ess-r" . "r") ("makefile-gmake" . "makefile")
                               ("makefile-bsdmake" . "makefile") ("conf-toml" . "toml") ("nxml" . "xml")
                               ("LaTeX" . "latex") ("objc" . "objective-c") ("text" . "plaintext")
                               ("fundamental" . "plaintext"))))
            name))))

;;;; Actions of the user

(defconst isthmus--most-files 1000 "More open files are not told of.")
(defconst isthmus--tell-after 0.02 "Seconds in which further changes are told along with the first.")

(defun isthmus--watch (change)
  "Add our functions to the hooks, or remove them.
CHANGE is `add-hook' or `remove-hook'."
  (dolist (hook '(post-command-hook buffer-list-update-hook first-change-hook after-save-hook find-file-hook
                  after-revert-hook after-set-visited-file-name-hook activate-mark-hook deactivate-mark-hook))
    (funcall change hook #'isthmus--changed))
  (funcall change 'after-save-hook #'isthmus--saved)
  (dolist (hook '(window-selection-change-functions window-buffer-change-functions))
    (funcall change hook #'isthmus--changed-in)
    (funcall change hook #'isthmus--look-for-hidden))
  (funcall change 'pre-command-hook #'isthmus--before-command)
  (funcall change 'post-command-hook #'isthmus--look-for-hidden)
  (funcall change 'after-change-major-mode-hook #'isthmus--restore-local-values)
  (funcall change 'kill-buffer-hook #'isthmus--buffer-killed)
  (isthmus--watch-programs change)
  (if (eq change 'add-hook)
      (add-hook 'kill-emacs-query-functions #'isthmus--about-to-quit 90)
    (remove-hook 'kill-emacs-query-functions #'isthmus--about-to-quit))
  (funcall change 'kill-emacs-hook #'isthmus--leave))

(defun isthmus--changed ()
  "Note that something changed that agents may know.
This runs after every command, so it does nothing else."
  (unless isthmus--tell-timer
    (setq isthmus--tell-timer (run-at-time isthmus--tell-after nil #'isthmus--tell))))

(defun isthmus--saved ()
  "Tell the companion that the user has saved this file."
  (let ((file (isthmus--file-of (current-buffer))))
    (when (and isthmus--greeted file)
      (isthmus--notify "editor/didSave" `((uri . ,(isthmus--uri file)))))))

(defun isthmus--changed-in (_frame)
  "Note that another window or buffer has the focus."
  (isthmus--changed))

(defun isthmus--tell ()
  "Tell the companion that something changed; it asks for the new state."
  (setq isthmus--tell-timer nil)
  (isthmus--note-focus)
  (when isthmus--greeted
    (let ((folders (isthmus--workspace-folders)))
      (unless (equal folders isthmus--folders)
        (setq isthmus--folders folders)
        (isthmus--notify "workspace/didChangeWorkspaceFolders")))
    (isthmus--notify "editor/didChange")))

(defun isthmus--note-focus ()
  "Note which file has the focus."
  (let* ((window (selected-window))
         (buffer (or (buffer-base-buffer (window-buffer window)) (window-buffer window))))
    (when (and (isthmus--file-of buffer) (not (window-minibuffer-p window)))
      (unless (and (eq buffer isthmus--active) (eq window isthmus--active-window))
        (setq isthmus--active buffer
              isthmus--active-window window)
        (with-current-buffer buffer
          (setq isthmus--focused-at (float-time)))))))

(defun isthmus--root-of (buffer)
  "Return the root of the project that BUFFER's file belongs to, or nil."
  (with-current-buffer buffer
    (when (eq isthmus--root 'unknown)
      (setq isthmus--root
            (condition-case nil
                (isthmus--without-questions
                  (when-let ((project (project-current nil)))
                    (directory-file-name (expand-file-name (project-root project)))))
              (error nil))))
    isthmus--root))

(defun isthmus--workspace-folders ()
  "Return the absolute paths of the workspace folders, at least one."
  (let* ((started-in (directory-file-name (expand-file-name (or command-line-default-directory "~"))))
         (is-narrow (not (or (equal started-in "/") (equal started-in (directory-file-name (expand-file-name "~"))))))
         (buffers (isthmus--file-buffers)))
    (or (mapcar (lambda (folder) (directory-file-name (expand-file-name folder))) isthmus-workspace-folders)
        (delete-dups (append (and is-narrow (list started-in))
                             (sort (delq nil (mapcar #'isthmus--root-of buffers)) #'string<)))
        (and buffers (list (directory-file-name (file-name-directory (isthmus--file-of (car buffers))))))
        (list started-in))))

(defun isthmus--on-workspace-folders (_params _id)
  "Answer workspace/workspaceFolders."
  (vconcat (mapcar (lambda (folder)
                     `((uri . ,(isthmus--uri folder)) (name . ,(isthmus--unicode (file-name-nondirectory folder)))))
                   (isthmus--workspace-folders))))

(defun isthmus--on-open-files (_params _id)
  "Answer editor/openFiles."
  (isthmus--note-focus)
  (vconcat (mapcar #'isthmus--describe (seq-take (isthmus--file-buffers) isthmus--most-files))))

(defun isthmus--describe (buffer)
  "Return the file in BUFFER in the protocol's form."
  (with-current-buffer buffer
    (unless isthmus--focused-at
      (setq isthmus--focused-at (if buffer-display-time (float-time buffer-display-time) (1- (float-time)))))
    `((uri . ,(isthmus--uri (isthmus--file-of buffer)))
      (isActive . ,(if (eq buffer isthmus--active) t :false))
      (focusedAt . ,isthmus--focused-at)
      (isDirty . ,(if (buffer-modified-p) t :false))
      (languageId . ,(isthmus--language))
      (lineCount . ,(isthmus--count-lines))
      ,@(when (eq buffer isthmus--active)
          (isthmus--describe-selection)))))

(defun isthmus--count-lines ()
  "Return the number of lines of this buffer, counted once after a change."
  (let ((tick (buffer-chars-modified-tick)))
    (unless (eql tick (car isthmus--line-count))
      (setq isthmus--line-count
            (cons tick (save-restriction
                         (widen)
                         (line-number-at-pos (point-max) t)))))
    (cdr isthmus--line-count)))

(defun isthmus--window-of-active ()
  "Return the window whose cursor is that of the active file, or nil."
  (let ((shows (lambda (window)
                 (and (window-live-p window)
                      (let ((buffer (window-buffer window)))
                        (eq (or (buffer-base-buffer buffer) buffer) isthmus--active))))))
    (seq-find shows (cons isthmus--active-window (get-buffer-window-list isthmus--active nil t)))))

(defun isthmus--describe-selection ()
  "Return the cursor and the selection in the active file, the current buffer."
  (let ((window (isthmus--window-of-active)))
    (with-current-buffer (if window (window-buffer window) isthmus--active) ; perhaps an indirect buffer
      (save-excursion
        (goto-char (if window (window-point window) (point)))
        (let ((text (and (region-active-p) (mark t) (isthmus--region-text))))
          `((cursor . ,(isthmus--position (point)))
            (selection . ,(if text
                              (isthmus--range (region-beginning) (region-end))
                            (isthmus--range (point) (point))))
            ,@(when text
                `((selectedText . ,text)))))))))

(defun isthmus--region-text ()
  "Return the text in the region, also of a rectangle; nil when it is empty."
  (let ((text (condition-case nil
                  (funcall region-extract-function nil)
                (error nil))))
    (and (stringp text)
         (not (string-empty-p text))
         (isthmus--unicode (substring-no-properties text)))))

(defun isthmus-mention ()
  "Show the agent this file, or the lines of the region."
  (interactive)
  (let* ((buffer (or (buffer-base-buffer) (current-buffer)))
         (path (isthmus--file-of buffer)))
    (cond
     ((null path) (user-error "Isthmus: this buffer is no file on disk"))
     ((not isthmus--greeted) (user-error "Isthmus: no companion runs; M-x isthmus-start"))
     (t
      (isthmus--notify "editor/didMention"
                       `((uri . ,(isthmus--uri path))
                         ,@(when (use-region-p)
                             `((range . ,(isthmus--range (region-beginning) (region-end)))))))
      (deactivate-mark)
      (isthmus--say "mentioned %s" (file-name-nondirectory path))))))

;;;; Requests of agents: files

(defun isthmus--open (path)
  "Return the buffer of the file PATH, which is opened if need be."
  (or (isthmus--buffer-of path)
      (progn
        (unless (isthmus--is-regular path)
          (isthmus--fail "%s: no such file" path))
        (when (eq (find-file-name-handler path 'insert-file-contents) 'epa-file-handler)
          (isthmus--fail "%s is encrypted; only the user may open it" path))
        (isthmus--without-questions
          (with-current-buffer (find-file-noselect path t)
            (setq isthmus--focused-at (float-time))
            (current-buffer))))))

(defun isthmus--window-for-files ()
  "Return a window that may show another file.
Not the minibuffer, a side window, a terminal or a review."
  (let ((usable (lambda (window)
                  (and (window-live-p window)
                       (not (window-minibuffer-p window))
                       (not (window-dedicated-p window))
                       (not (window-parameter window 'window-side))
                       (with-current-buffer (window-buffer window)
                         (not (or isthmus--review (isthmus--is-terminal))))))))
    (or (seq-find usable `(,(selected-window) ,isthmus--active-window
                           ,@(window-list nil 'no-minibuffer)))
        (condition-case nil
            (split-window (frame-root-window))
          (error (frame-first-window))))))

(defun isthmus--is-terminal ()
  "Return non-nil if the current buffer is a terminal or a shell."
  (derived-mode-p 'term-mode 'vterm-mode 'eat-mode 'eshell-mode 'comint-mode))

(defun isthmus--is-terminal-in (window)
  "Return WINDOW if a terminal or a shell is in it, else nil."
  (with-current-buffer (window-buffer window)
    (and (isthmus--is-terminal) window)))

(defun isthmus--on-show-document (params _id)
  "Answer window/showDocument with PARAMS."
  (let* ((buffer (isthmus--open (isthmus--path (plist-get params :uri))))
         (selection (plist-get params :selection)))
    (when (plist-get params :takeFocus)
      (isthmus--when-free
       (lambda ()
         (when (buffer-live-p buffer)
           (let ((window (isthmus--window-for-files)))
             (set-window-buffer window buffer)
             (select-window window)
             (when selection
               (isthmus--select window buffer (plist-get selection :start) (plist-get selection :end)))
             (isthmus--changed))))))
    (isthmus--changed)
    '((success . t))))

(defun isthmus--when-free (action)
  "Call ACTION now, or after the user has answered Emacs's question.
On the way out of the minibuffer Emacs shows the windows as they were before."
  (if (zerop (minibuffer-depth))
      (funcall action)
    (run-at-time 0.2 nil #'isthmus--when-free action)))

(defun isthmus--select (window buffer start end)
  "Put the cursor of WINDOW at START in its BUFFER, and select up to END."
  (with-current-buffer buffer
    (let (from to)
      (save-restriction
        (widen)
        (setq from (isthmus--place start)
              to (isthmus--place end)))
      (unless (<= (point-min) from to (point-max))
        (widen))
      (goto-char from)
      (set-window-point window from)
      (if (= from to)
          (deactivate-mark)
        (push-mark to t t))
      (setq deactivate-mark nil))))

(defun isthmus--on-close-document (params _id)
  "Answer editor/closeDocument with PARAMS."
  (let* ((path (isthmus--path (plist-get params :uri)))
         (buffer (isthmus--buffer-of path)))
    (when buffer
      (when (buffer-modified-p buffer)
        (isthmus--fail "%s has unsaved changes" path))
      (unless (isthmus--without-questions (kill-buffer buffer))
        (isthmus--fail "%s: something in Emacs keeps it open" path)))
    :null))

(defun isthmus--on-text (params _id)
  "Answer editor/text with PARAMS."
  (if-let ((buffer (isthmus--buffer-of (isthmus--path (plist-get params :uri)))))
      (isthmus--unicode (isthmus--text-of buffer))
    :null))

(defun isthmus--on-save-document (params _id)
  "Answer editor/saveDocument with PARAMS."
  (let* ((path (isthmus--path (plist-get params :uri)))
         (buffer (or (isthmus--buffer-of path)
                     (isthmus--fail "%s is not open" path))))
    (with-current-buffer buffer
      (when (buffer-modified-p)
        (unless (verify-visited-file-modtime buffer)
          (isthmus--fail "%s changed on disk since Emacs read it; decide in Emacs: save it, or M-x revert-buffer" path))
        (unless (and (file-writable-p path) (not buffer-read-only))
          (isthmus--fail "%s is read-only" path))
        (when-let ((place (isthmus--unencodable)))
          (isthmus--fail "%s: the character in line %d cannot be written as %s; the user has to save it"
                         path (line-number-at-pos place t) buffer-file-coding-system))
        (isthmus--without-questions
          (let ((require-final-newline (and (not (symbolp require-final-newline)) require-final-newline))
                (mode-require-final-newline nil))
            (save-restriction
              (widen)
              (basic-save-buffer))))
        (when (buffer-modified-p)
          (isthmus--fail "%s: something in Emacs kept it from being saved" path))))
    :null))

(defun isthmus--unencodable ()
  "Return the place of a character that this buffer's coding system lacks.
For such a one Emacs would take another coding system, or ask."
  (save-restriction
    (widen)
    (and buffer-file-coding-system
         (not (memq (coding-system-type buffer-file-coding-system) '(undecided raw-text)))
         (unencodable-char-position (point-min) (point-max) buffer-file-coding-system))))

(defconst isthmus--settling 2.0 "Seconds after a reload in which diagnostics are told.")
(defconst isthmus--settling-look 0.1 "Seconds between two looks for them.")

(defun isthmus--on-reload (params _id)
  "Answer editor/reload with PARAMS."
  (let (checked)
    (when isthmus-reload-files
      (seq-doseq (uri (plist-get params :uris))
        (when-let ((buffer (isthmus--buffer-of (isthmus--path uri))))
          (cond
           ((isthmus--read-again buffer)
            (when (isthmus--check-anew buffer)
              (push uri checked)))
           ((buffer-modified-p buffer)
            (isthmus--note-conflict buffer))))))
    `((checked . ,(vconcat (nreverse checked))))))

(defun isthmus--read-again (buffer)
  "Read the file of BUFFER again, if it changed on disk.
Do nothing if it has unsaved changes.  Return whether it was read."
  (with-current-buffer buffer
    (unless (buffer-modified-p)
      (setq isthmus--conflict nil)
      (and (not (verify-visited-file-modtime buffer))
           (file-readable-p buffer-file-name)
           (condition-case nil
               (isthmus--without-questions
                 (let ((inhibit-message t)
                       (deactivate-mark nil))
                   (save-restriction
                     (revert-buffer t t t))
                   t))
             (error nil))))))

(defun isthmus--note-conflict (buffer)
  "Tell the user once that the file of BUFFER changed on disk, unlike the buffer.
They have unsaved changes in it, or files are not read again."
  (with-current-buffer buffer
    (unless (or isthmus--conflict (verify-visited-file-modtime buffer))
      (setq isthmus--conflict t)
      (isthmus--say "%s changed on disk; %s.  M-x revert-buffer takes the file"
                    (file-name-nondirectory buffer-file-name)
                    (if (buffer-modified-p) "your changes are kept" "this buffer has the former text")))))

(defun isthmus--check-anew (buffer)
  "Start Flymake and Flycheck in BUFFER, and tell its new diagnostics.
Return whether either is on."
  (with-current-buffer buffer
    (when (or (bound-and-true-p flymake-mode) (bound-and-true-p flycheck-mode))
      (ignore-errors
        (when (bound-and-true-p flymake-mode)
          (flymake-start))
        (when (bound-and-true-p flycheck-mode)
          (flycheck-buffer)))
      (isthmus--tell-diagnostics buffer (isthmus--diagnostics buffer) nil (+ (float-time) isthmus--settling))
      t)))

(defun isthmus--is-checked ()
  "Return whether Flymake and Flycheck have reported all of this buffer.
A language server reports its last findings at once, and new ones later."
  (not (or (bound-and-true-p eglot--managed-mode)
           (bound-and-true-p lsp-mode)
           (and (bound-and-true-p flymake-mode)
                (seq-difference (flymake-running-backends) (flymake-reporting-backends)))
           (and (bound-and-true-p flycheck-mode) (flycheck-running-p)))))

(defun isthmus--tell-diagnostics (buffer former was-checked until)
  "Tell the companion when the diagnostics of BUFFER are not FORMER, or complete.
WAS-CHECKED is non-nil if the latter was told.  Look again until the time UNTIL."
  (when (and isthmus--greeted (buffer-live-p buffer) (isthmus--file-of buffer))
    (let* ((found (isthmus--diagnostics buffer))
           (is-checked (with-current-buffer buffer (isthmus--is-checked)))
           (is-new (not (equal found former))))
      (when (or is-new (and is-checked (not was-checked)))
        (isthmus--notify "editor/didChangeDiagnostics" `((uri . ,(isthmus--uri (isthmus--file-of buffer))))))
      (when (< (float-time) until)
        (run-at-time isthmus--settling-look nil #'isthmus--tell-diagnostics buffer found is-checked until)))))

(defun isthmus--on-message (params _id)
  "Show the message in PARAMS; all of it is in the buffer *Messages*."
  (isthmus--say "%s" (string-trim (plist-get params :message))))

(defun isthmus--setenv (name value)
  "Set the environment variable NAME of Emacs to VALUE, or unset it if nil."
  (with-temp-buffer ; a buffer may have an environment of its own
    (setenv name value)))

(defun isthmus--set-variables (variables)
  "Set VARIABLES, a plist, for terminals that are opened from now on."
  (cl-loop for (key value) on variables by #'cddr
           do (let ((name (substring (symbol-name key) 1)))
                (unless (assoc name isthmus--variables)
                  (push (cons name (with-temp-buffer (getenv name))) isthmus--variables))
                (isthmus--setenv name value))))

(defun isthmus--on-terminal-environment (params _id)
  "Answer editor/setTerminalEnvironment with PARAMS."
  (isthmus--set-variables (plist-get params :variables))
  :null)

;;;; Requests of agents: diagnostics

(defun isthmus--on-diagnostic (params _id)
  "Answer textDocument/diagnostic with PARAMS."
  (let ((buffer (isthmus--buffer-of (isthmus--path (plist-get (plist-get params :textDocument) :uri)))))
    `((kind . "full") (items . ,(if buffer (isthmus--diagnostics buffer) [])))))

(defun isthmus--on-workspace-diagnostic (_params _id)
  "Answer workspace/diagnostic."
  `((items . ,(vconcat (mapcar (lambda (buffer)
                                 `((uri . ,(isthmus--uri (isthmus--file-of buffer)))
                                   (version . :null)
                                   (kind . "full")
                                   (items . ,(isthmus--diagnostics buffer))))
                               (isthmus--file-buffers))))))

(defun isthmus--diagnostics (buffer)
  "Return the diagnostics of Flymake and Flycheck in BUFFER."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (vconcat (when (bound-and-true-p flymake-mode)
                 (delq nil (mapcar #'isthmus--of-flymake (flymake-diagnostics))))
               (when (bound-and-true-p flycheck-mode)
                 (delq nil (mapcar #'isthmus--of-flycheck flycheck-current-errors)))))))

(defun isthmus--finding (start end severity text source code)
  "Return a diagnostic from START to END with SEVERITY and TEXT.
SOURCE is a string or nil, CODE anything printable or nil."
  `((range . ,(isthmus--range start end))
    (severity . ,severity)
    (message . ,(isthmus--unicode text))
    ,@(when source `((source . ,(isthmus--unicode source))))
    ,@(when code `((code . ,(isthmus--unicode (format "%s" code)))))))

(defun isthmus--of-flymake (diagnostic)
  "Return Flymake's DIAGNOSTIC; nil when it is not in this buffer."
  (require 'warnings)
  (let* ((start (flymake-diagnostic-beg diagnostic))
         (end (flymake-diagnostic-end diagnostic))
         (type (flymake-diagnostic-type diagnostic))
         (level (or (flymake--lookup-type-property type 'severity) (warning-numeric-level :error)))
         (data (flymake-diagnostic-data diagnostic))
         (of-server (and (consp data) (consp (car data)) (alist-get 'eglot-lsp-diag data)))
         (backend (flymake-diagnostic-backend diagnostic)))
    (when (and (integer-or-marker-p start) (integer-or-marker-p end))
      (isthmus--finding start end
                        (cond ((eq type :note) 3)
                              ((>= level (warning-numeric-level :error)) 1)
                              ((>= level (warning-numeric-level :warning)) 2)
                              (t 3))
                        (flymake-diagnostic-text diagnostic)
                        (or (plist-get of-server :source) (and backend (symbolp backend) (symbol-name backend)))
                        (plist-get of-server :code)))))

(defun isthmus--of-flycheck (finding)
  "Return Flycheck's FINDING; nil when it is about the whole file."
  (when-let ((region (flycheck-error-region-for-mode finding 'symbols)))
    (isthmus--finding (car region) (cdr region)
                      (pcase (flycheck-error-level finding) ('error 1) ('warning 2) (_ 3))
                      (or (flycheck-error-message finding) "")
                      (symbol-name (flycheck-error-checker finding))
                      (flycheck-error-id finding))))

;;;; Requests of agents: tools of the user

(defun isthmus-define-tool (name description parameters function)
  "Give agents a tool NAME: they call FUNCTION in this Emacs with it.
DESCRIPTION tells agents when to use it.  Each of PARAMETERS is a list
\(NAME TYPE DESCRIPTION [OPTIONAL]); TYPE is a type of JSON Schema:
\"string\", \"integer\", \"number\", \"boolean\", \"array\" or \"object\".

FUNCTION gets their values in this order: lists for arrays, plists for
objects, nil for false and for what was left out.  The current buffer is the
file that has, or had last, the focus.  The agent gets what it returns, a
string or any other value, or the text of its error.  It must not ask the
user anything, and Emacs does nothing else meanwhile.

The companion offers the tools that are there when it starts."
  (unless (string-match-p "\\`[A-Za-z0-9_-]\\{1,64\\}\\'" name)
    (error "Isthmus: the name of a tool has 1 to 64 letters, digits, _ and -, unlike %S" name))
  (setq isthmus--tools (append (assoc-delete-all name isthmus--tools)
                               (list (list name description parameters function)))))

(defun isthmus--describe-tool (tool)
  "Return TOOL in the protocol's form."
  (pcase-let ((`(,name ,description ,parameters ,_) tool))
    `((name . ,(isthmus--unicode name))
      (description . ,(isthmus--unicode description))
      (inputSchema
       . ((type . "object")
          (properties . ,(if parameters
                             (mapcar (pcase-lambda (`(,name ,type ,description . ,_))
                                       `(,(intern name)
                                         . ((type . ,type) (description . ,(isthmus--unicode description)))))
                                     parameters)
                           isthmus--empty))
          (required . ,(vconcat (mapcar #'car (seq-remove (lambda (parameter) (nth 3 parameter)) parameters))))
          (additionalProperties . :false))))))

(defun isthmus--on-call-tool (params _id)
  "Answer editor/callTool with PARAMS."
  (pcase-let* ((name (plist-get params :name))
               (arguments (plist-get params :arguments))
               (`(,_ ,_ ,parameters ,function)
                (or (assoc name isthmus--tools) (isthmus--fail "%s: Emacs has no such tool" name)))
               (values (mapcar (lambda (parameter) (plist-get arguments (intern (concat ":" (car parameter)))))
                               parameters))
               (result (with-current-buffer (if (buffer-live-p isthmus--active) isthmus--active (current-buffer))
                         (save-excursion
                           (isthmus--without-questions
                             (with-local-quit (apply function values)))))))
    `((text . ,(isthmus--unicode (if (stringp result) (substring-no-properties result) (format "%S" result)))))))

;;;; Requests of agents: questions

(defvar isthmus-question-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "y" #'isthmus-answer-yes)
    (define-key map "n" #'isthmus-answer-no)
    (define-key map "q" #'isthmus-answer-no)
    map)
  "Keys in a question.")

(defconst isthmus--page-seconds 0.7
  "Seconds after a page of a question was shown in which a held key does nothing.")

(defvar-local isthmus--seen-to 1 "The position up to which the text of this question was on the screen.")
(defvar-local isthmus--paged-at 0.0 "When a page of this question was last shown by a key that answers.")

(defun isthmus--note-seen (window &rest _)
  "Note the part of a question that is on the screen in WINDOW."
  (with-current-buffer (window-buffer window)
    (when (and (derived-mode-p 'isthmus-question-mode) (<= (window-start window) isthmus--seen-to))
      (setq isthmus--seen-to (max isthmus--seen-to (window-end window t))))))

(defun isthmus--reads-on ()
  "Return whether a part of the question in this buffer was not on the screen yet.
It is then."
  (let ((windows (get-buffer-window-list nil nil t))
        (is-held (< (- (float-time) isthmus--paged-at) isthmus--page-seconds)))
    (mapc #'isthmus--note-seen windows)
    (when (or is-held (< isthmus--seen-to (point-max)))
      (setq isthmus--paged-at (float-time))
      (unless is-held
        (dolist (window (or windows (list (display-buffer (current-buffer)))))
          (set-window-start window isthmus--seen-to)
          (set-window-point window isthmus--seen-to))
        (isthmus--say "not all of the question was on the screen: read on, and answer at its end"))
      t)))

(define-derived-mode isthmus-question-mode special-mode "Question"
  "A question of an agent: y is yes, n or killing the buffer is no.
A yes counts once all of the question was on the screen."
  (add-hook 'window-scroll-functions #'isthmus--note-seen nil t)
  (setq header-line-format (substitute-command-keys
                            "\\<isthmus-question-mode-map>\\[isthmus-answer-yes] yes   \\[isthmus-answer-no] no")))

(defun isthmus--on-question (params id)
  "Ask the user the question in PARAMS, in a window that takes no focus.
The request ID is answered later."
  (let ((text (plist-get params :message)))
    (with-current-buffer (generate-new-buffer "*Isthmus asks*")
      (insert text "\n")
      (goto-char (point-min))
      (isthmus-question-mode)
      (setq isthmus--question id)
      (push (current-buffer) isthmus--questions)
      (isthmus--when-free (apply-partially #'isthmus--show-question (current-buffer)))
      (isthmus--say "%s (M-x isthmus-answer)" (car (split-string text "\n")))))
  isthmus--later)

(defun isthmus--show-question (buffer)
  "Show BUFFER, a question, below everything else, without the focus."
  (when (buffer-live-p buffer)
    (isthmus--without-questions
      (display-buffer buffer '((display-buffer-in-side-window) (side . bottom) (window-height . fit-window-to-buffer)
                               (inhibit-same-window . t))))))

;; Programs at Emacs's server: `emacsclient --eval', which an agent may run, answers nothing.

(defvar isthmus--in-commands nil
  "The depths of the command loops that run a command.
A command that reads from the minibuffer goes on after the commands there.")

(defvar isthmus--is-serving nil
  "Whether Emacs does what a program sent to its server.")

(defvar isthmus--has-sent-keys nil
  "Whether a program has put keys into the queue of Emacs that are not used up.")

(defun isthmus--note-program (serve &rest arguments)
  "Call SERVE with ARGUMENTS, and note whether keys are in the queue then."
  (let ((before unread-command-events))
    (unwind-protect
        (let ((isthmus--is-serving t))
          (apply serve arguments))
      (unless (or (eq before unread-command-events) (null unread-command-events))
        (setq isthmus--has-sent-keys t)))))

(defun isthmus--command-begins ()
  "Note that a command begins."
  (cl-pushnew (recursion-depth) isthmus--in-commands))

(defun isthmus--command-ends ()
  "Note that a command has ended."
  (setq isthmus--in-commands (remq (recursion-depth) isthmus--in-commands)
        isthmus--has-sent-keys (and isthmus--has-sent-keys unread-command-events t)))

(defun isthmus--watch-programs (change)
  "Begin or end to note what comes from programs.
CHANGE is `add-hook' or `remove-hook'."
  (funcall change 'pre-command-hook #'isthmus--command-begins)
  (funcall change 'post-command-hook #'isthmus--command-ends)
  (dolist (function '(server-process-filter server-execute))
    (if (eq change #'add-hook)
        (advice-add function :around #'isthmus--note-program)
      (advice-remove function #'isthmus--note-program))))

(defun isthmus--require-user ()
  "Signal an error, and say so, unless the running command is the user's."
  (when (or isthmus--is-serving isthmus--has-sent-keys
            (not (memq (recursion-depth) isthmus--in-commands)))
    (isthmus--say "not answered: a program called that, not a key of yours")
    (user-error "Isthmus: only the user answers, with a key")))

(defun isthmus--question-closed ()
  "Answer the question in this buffer, which is killed, with no."
  (setq isthmus--questions (remq (current-buffer) isthmus--questions))
  (when isthmus--question
    (isthmus--answer isthmus--question :null))
  (setq isthmus--question nil))

(defun isthmus--close-question (answer)
  "Answer the question in the current buffer with ANSWER, and close it.
Without an ANSWER it is only closed."
  (let ((id isthmus--question)
        (buffer (current-buffer)))
    (setq isthmus--question nil
          isthmus--questions (remq buffer isthmus--questions))
    (when (and id answer)
      (isthmus--answer id `((title . ,answer))))
    (when (zerop (minibuffer-depth)) ; else the prompt would lose the focus
      (dolist (window (get-buffer-window-list buffer nil t))
        (condition-case nil
            (quit-restore-window window)
          (error nil))))
    (kill-buffer buffer)))

(defun isthmus-answer-yes ()
  "Answer the question in this buffer with yes."
  (interactive)
  (isthmus--require-user)
  (unless (isthmus--reads-on)
    (isthmus--close-question "Yes")))

(defun isthmus-answer-no ()
  "Answer the question in this buffer with no."
  (interactive)
  (isthmus--require-user)
  (isthmus--close-question "No"))

(defun isthmus-answer ()
  "Answer the question that has waited longest."
  (interactive)
  (isthmus--require-user)
  (let ((buffer (or (car (last isthmus--questions))
                    (user-error "Isthmus: nobody asks anything"))))
    (pop-to-buffer buffer)
    (let ((answer (if (y-or-n-p (concat (buffer-substring (point-min) (line-end-position)) " ")) "Yes" "No")))
      (if (buffer-live-p buffer)
          (with-current-buffer buffer
            (unless (and (equal answer "Yes") (isthmus--reads-on))
              (isthmus--close-question answer)))
        (isthmus--say "this answer is not needed any more")))))

(defun isthmus--on-cancel (params _id)
  "Close the question of the request that PARAMS names."
  (dolist (buffer isthmus--questions)
    (when (equal (buffer-local-value 'isthmus--question buffer) (plist-get params :id))
      (with-current-buffer buffer
        (let ((id isthmus--question))
          (isthmus--close-question nil)
          (isthmus--answer-error id -32800 "cancelled"))))))

;;;; Reviews

(cl-defstruct (isthmus-review (:constructor isthmus--make-review) (:copier nil))
  "An edit that an agent proposes and the user has not decided on.
SHOWN is the proposed text as it was put into the buffer PROPOSAL;
CODING and MARK say how to get back what was sent."
  id path title shown coding mark proposal current is-seen is-in-sight hunks comparing telling)

(defconst isthmus--largest-file (* 64 1024 1024) "Bytes of a file beyond which it is not shown beside a proposal.")
(defconst isthmus--most-refined 20 "Changes in which single words are marked; the others are marked by lines.")
(defconst isthmus--most-removed 200 "Removed lines of one change that the layout `unified' shows.")
(defvar isthmus--layout nil "The windows as they were before the first review was shown.")
(defvar isthmus--show-timer nil "Shows reviews when the user pauses.")
(defvar isthmus--fresh nil
  "The review that took the window a moment ago: (REVIEW UNTIL RETURNS).
Before the time UNTIL it cannot be accepted; with RETURNS its keys go
back to where the user was.")
(defconst isthmus--next-reading 1.0
  "Seconds in which a review that followed another one cannot be accepted.
Its keys go nowhere else, as the user decides reviews.")

(put 'isthmus--review 'permanent-local t)
(put 'isthmus--header 'permanent-local t)
(put 'isthmus-review-mode 'permanent-local t)

(defvar isthmus-review-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'isthmus-review-accept)
    (define-key map (kbd "C-c C-k") #'isthmus-review-reject)
    (define-key map (kbd "C-c C-n") #'isthmus-review-next)
    (define-key map (kbd "C-c C-p") #'isthmus-review-previous)
    (define-key map (kbd "C-c C-e") #'isthmus-review-ediff)
    (define-key map (kbd "C-c C-a") #'isthmus-review-accept-hunk)
    (define-key map (kbd "C-c C-d") #'isthmus-review-reject-hunk)
    (pcase-dolist (`(,command . ,ours)
                   '((save-buffer . isthmus-review-save) (write-file . isthmus-review-copy)
                     (evil-write . isthmus-review-save) (evil-update . isthmus-review-save)
                     (evil-save-and-close . isthmus-review-save) (evil-save-modified-and-close . isthmus-review-save)
                     (evil-save . isthmus-review-copy) (evil-write-all . isthmus-review-save-all)
                     (evil-save-and-quit . isthmus-review-save-all-and-leave) (evil-quit . isthmus-review-quit)))
      (define-key map (vector 'remap command) ours)) ; Evil looks here for the commands that follow a colon, too
    map)
  "Keys in a review.")

(define-minor-mode isthmus-review-mode
  "A review: the file on disk beside what an agent proposes, which you can edit.
\\<isthmus-review-mode-map>\\[isthmus-review-accept] accepts, \\[isthmus-review-reject] rejects."
  :lighter " Review")

(defun isthmus--split-text (text)
  "Split TEXT for a buffer: (SHOWN CODING MARK).
CODING gets TEXT back from SHOWN; MARK: it began with a byte order mark.  Text
whose newlines are all CRLF is shown without the carriage returns; any other is
shown as it is."
  (let* ((mark (string-prefix-p "\xFEFF" text))
         (rest (if mark (substring text 1) text))
         (shown (and (string-search "\r" rest) (string-replace "\r\n" "\n" rest)))
         (is-dos (and shown (equal (string-replace "\n" "\r\n" shown) rest))))
    (list (if is-dos shown rest) (if is-dos 'utf-8-dos 'utf-8-unix) mark)))

(defun isthmus--read-file (path)
  "Return the text of the file PATH as it is on disk; nil when there is none.
Bytes that are not UTF-8 stay bytes."
  (when-let ((attributes (file-attributes path)))
    (cond
     ((not (isthmus--is-regular path)) (isthmus--fail "%s is not a regular file" path))
     ((> (file-attribute-size (file-attributes (file-truename path))) isthmus--largest-file)
      (isthmus--fail "%s is too large to be shown" path)))
    (with-temp-buffer
      (set-buffer-multibyte nil)
      (condition-case problem
          (insert-file-contents-literally path) ; also of an encrypted or compressed file what is on disk
        (file-error (isthmus--fail "%s cannot be shown: %s" path (error-message-string problem))))
      (decode-coding-string (buffer-string) 'utf-8-unix t))))

(defun isthmus--fill (buffer text path target)
  "Put TEXT into BUFFER and make it look like the file PATH.
TARGET is the buffer in which that is open, or nil."
  (with-current-buffer buffer
    (buffer-disable-undo)
    (insert text)
    (isthmus--show-reordering)
    (goto-char (point-min))
    (condition-case nil
        (isthmus--without-questions
          (let ((enable-local-variables nil)
                (inhibit-message t))
            (when (< (buffer-size) 1000000)
              (delay-mode-hooks ; no language servers and the like
                (if target
                    (funcall (buffer-local-value 'major-mode target))
                  (let ((buffer-file-name path))
                    (set-auto-mode))))
              (when target
                (dolist (variable '(indent-tabs-mode tab-width fill-column))
                  (set (make-local-variable variable) (buffer-local-value variable target))))
              (font-lock-mode 1))))
      (error nil))
    (setq buffer-undo-list nil) ; undo does not lead to an empty text
    (setq default-directory (isthmus--existing-folder path))
    (set-buffer-modified-p nil)))

(defun isthmus--show-reordering ()
  "Show the characters that reorder text in this buffer, without effect.
What is read has to be what is accepted."
  (goto-char (point-min))
  (while (re-search-forward isthmus--reordering nil t)
    (add-text-properties (1- (point)) (point)
                         `(display ,(propertize (format "\\u%04x" (char-before)) 'face 'escape-glyph)
                           rear-nonsticky (display)))))

(defun isthmus--existing-folder (path)
  "Return the innermost folder above PATH that exists."
  (or (locate-dominating-file path #'file-directory-p) "/"))

(defun isthmus--on-open-diff (params _id)
  "Answer editor/openDiff with PARAMS."
  (let* ((path (isthmus--path (plist-get params :uri)))
         (name (isthmus--visible (file-name-nondirectory path)))
         (title (plist-get params :title))
         (on-disk (isthmus--read-file path))
         (target (isthmus--buffer-of path)))
    (pcase-let*
        ((`(,shown ,coding ,mark) (isthmus--split-text (plist-get params :proposed)))
         (`(,old ,old-coding ,_) (isthmus--split-text (or on-disk "")))
         (review (isthmus--make-review
                  :id (plist-get params :id) :path path :title title :shown shown :coding coding :mark mark
                  :current (generate-new-buffer (format "*on disk: %s*" name))
                  :proposal (generate-new-buffer (format "*proposed: %s*" name))))
         (notes (delq nil (list (cond (on-disk "on disk") ((plist-get params :isNewFile) "new file") (t "is gone"))
                                (and target (buffer-modified-p target) "without your unsaved changes")
                                (and on-disk (not (eq coding old-coding)) (not (string-empty-p old))
                                     (if (eq coding 'utf-8-dos) "newlines become CRLF" "newlines become LF"))))))
      (isthmus--fill (isthmus-review-current review) old path target)
      (isthmus--fill (isthmus-review-proposal review) shown path target)
      (with-current-buffer (isthmus-review-current review)
        (setq buffer-read-only t)
        (isthmus--dress review (format " %s  %s" (string-join notes ", ") (abbreviate-file-name path))))
      (with-current-buffer (isthmus-review-proposal review)
        (buffer-enable-undo)
        (set-buffer-modified-p t) ; otherwise commands that save do nothing, with or without us
        (isthmus--dress review (concat (propertize " C-c C-c" 'face 'bold) " accept  "
                                       (propertize "C-c C-k" 'face 'bold) " reject  proposed"
                                       (if (string-empty-p (or title "")) "" (concat " by " title)))
                        (concat (propertize " In a moment C-c C-c accepts" 'face 'warning)
                                (if (string-empty-p (or title "")) "" (concat "; proposed by " title)))))
      (isthmus--set-reviews (cons review isthmus--reviews))
      (isthmus--compare review)
      (isthmus--show-reviews)
      (isthmus--run-functions 'isthmus-diff-opened-functions path)
      (unless (isthmus-review-is-seen review)
        (isthmus--say "a review of %s waits; it is shown when you pause" name))))
  :null)

(defun isthmus--dress (review header &optional waiting)
  "Make the current buffer a side of REVIEW, with HEADER above it.
WAITING stands there while the review takes no keys."
  (setq isthmus--review review
        isthmus--header `((isthmus--takes-keys
                           ,@(mapcar (lambda (text) (string-replace "%" "%%" (isthmus--visible text)))
                                     (list header (or waiting header))))))
  (isthmus--restore-local-values)
  (isthmus-review-mode 1))

(defun isthmus--restore-local-values ()
  "Set what a new major mode takes away, if this buffer is a side of a review."
  (when isthmus--review
    (setq header-line-format isthmus--header)
    (add-hook 'write-contents-functions #'isthmus--write-contents nil t)
    (when (isthmus--is-proposal)
      (add-hook 'after-change-functions #'isthmus--proposal-changed nil t))))

(defun isthmus--is-proposal ()
  "Return non-nil if the current buffer is the proposal of a review."
  (and isthmus--review (eq (current-buffer) (isthmus-review-proposal isthmus--review))))

;; Showing

(defun isthmus--frame ()
  "Return the frame in which the user works.
That is the one with the keyboard's focus, else that of the last key.  A new
frame, which a program may have made, is selected before the user goes there."
  (let* ((has-focus (lambda (frame) (eq (frame-focus-state frame) t)))
         (found (or (seq-find has-focus (frame-list))
                    (and (framep last-event-frame) (frame-live-p last-event-frame) last-event-frame)
                    (selected-frame)))
         (frame (or (frame-parent found) found)))
    (if (eq (framep frame) t) ; a terminal shows one of its frames
        (tty-top-frame (frame-terminal frame))
      frame)))

(defun isthmus--may-show ()
  "Return non-nil if a review may be shown now.
That is when the user does not type, and answers no question of Emacs."
  (and (zerop (minibuffer-depth))
       (not (or defining-kbd-macro executing-kbd-macro (bound-and-true-p isearch-mode)))
       (not (equal (terminal-name (isthmus--frame)) "initial_terminal"))
       (let ((idle (current-idle-time)))
         (and idle (>= (float-time idle) isthmus-review-when-idle)))))

(defun isthmus--show-reviews ()
  "Show the newest review that the user has not seen, as soon as they pause."
  (when isthmus--show-timer
    (cancel-timer isthmus--show-timer)
    (setq isthmus--show-timer nil))
  (when-let ((review (seq-find (lambda (review) (not (isthmus-review-is-seen review))) isthmus--reviews)))
    (if (isthmus--may-show)
        (progn
          (isthmus--forget-layout)
          (isthmus--show review (+ (float-time) isthmus-review-reading) t))
      (setq isthmus--show-timer (run-at-time 0.2 nil #'isthmus--show-reviews)))))

(defun isthmus--show (review &optional until returns)
  "Show REVIEW side by side.
A terminal that has the focus keeps it, and stays below; one at a side of
the frame stays there.  UNTIL and RETURNS: see `isthmus--fresh'; without
them the user asked for it."
  (let ((frame (isthmus--frame)))
    (when (and isthmus--layout (not (eq frame (window-configuration-frame isthmus--layout))))
      (isthmus--restore-layout)) ; the user works in another frame now
    (select-frame frame))
  (unless isthmus--layout
    (setq isthmus--layout (current-window-configuration)))
  (setf (isthmus-review-is-seen review) t)
  (let* ((ignore-window-parameters t)
         (selected (selected-window))
         (terminal (isthmus--is-terminal-in selected))
         (is-at-side (lambda (window) (window-parameter window 'window-side)))
         (window (if (funcall is-at-side selected)
                     (or (seq-find (lambda (window) (not (funcall is-at-side window))) (window-list nil 'no-minibuffer))
                         selected)
                   selected))
         (others (1- (length isthmus--reviews))))
    (dolist (other (window-list nil 'no-minibuffer))
      (unless (or (eq other window) (and (funcall is-at-side other) (isthmus--is-terminal-in other)))
        (delete-window other)))
    (let* ((left (if (eq window terminal)
                     (split-window terminal (- (/ (window-total-height terminal) 3)) 'above)
                   window))
           (right (pcase isthmus-review-layout
                    ('unified left)
                    ('side-by-side (split-window left nil 'right))
                    ('stacked (split-window left nil 'below))
                    (_ (split-window left nil (if (>= (window-total-width left) 80) 'right 'below))))))
      (cl-loop for (window . buffer) in `((,left . ,(isthmus-review-current review))
                                          (,right . ,(isthmus-review-proposal review)))
               do (progn
                    (set-window-dedicated-p window nil)
                    (set-window-buffer window buffer)
                    (set-window-point window (with-current-buffer buffer (point)))))
      (dolist (each isthmus--reviews)
        (setf (isthmus-review-is-in-sight each) (eq each review)))
      (unless terminal
        (select-window right)
        (isthmus--take-keys-later review until returns)
        (when (and (eq isthmus-review-layout 'ediff) (not (isthmus--is-fresh review)))
          (isthmus--start-ediff review)))
      (isthmus--say "%s%s"
                    (if terminal ; its keys go to the program in it
                        (format "a review of %s is shown above; %s goes there"
                                (file-name-nondirectory (isthmus-review-path review))
                                (substitute-command-keys "\\[other-window]"))
                      (isthmus--keys))
                    (if (> others 0) (format "; %d more review(s)" others) "")))))

(defun isthmus--take-keys-later (review until returns)
  "Let REVIEW, which has the focus now, take keys from the time UNTIL on.
RETURNS: see `isthmus--fresh'."
  (when isthmus--fresh
    (isthmus--take-keys (car isthmus--fresh)))
  (when (and until (< (float-time) until))
    (setq isthmus--fresh (list review until returns))
    (with-current-buffer (isthmus-review-proposal review)
      (setq isthmus--takes-keys nil))
    (run-at-time (- until (float-time)) nil #'isthmus--reading-is-over review until)))

(defun isthmus--reading-is-over (review until)
  "Let REVIEW take keys, if UNTIL is the time that it waits for.
With the layout `ediff' that starts it, unless the user looks elsewhere."
  (isthmus--take-keys review until)
  (when (and (eq isthmus-review-layout 'ediff) (memq review isthmus--reviews) (isthmus--may-show)
             (eq (isthmus-review-proposal review) (window-buffer (selected-window))))
    (isthmus--start-ediff review)))

(defun isthmus--take-keys (review &optional until)
  "Let REVIEW take keys; with UNTIL only when that is the time it waits for."
  (when (and (eq review (car isthmus--fresh)) (or (null until) (eql until (cadr isthmus--fresh))))
    (setq isthmus--fresh nil)
    (when (buffer-live-p (isthmus-review-proposal review))
      (with-current-buffer (isthmus-review-proposal review)
        (setq isthmus--takes-keys t)
        (force-mode-line-update)))))

(defun isthmus--is-fresh (review)
  "Return non-nil if REVIEW took the window only a moment ago."
  (and (eq review (car isthmus--fresh)) (< (float-time) (cadr isthmus--fresh))))

(defun isthmus--before-command ()
  "Give keys that come too soon for a review back to where the user was.
The review's own keys decide nothing then, and do nothing elsewhere; keys
such as the one for saving are not its own."
  (pcase isthmus--fresh
    ((and `(,review ,_until t)
          (guard (and (eq review isthmus--review) (memq review isthmus--reviews) (isthmus--is-fresh review)
                      isthmus--layout
                      (not (mouse-event-p last-command-event))
                      (not (and (symbolp this-original-command)
                                (string-prefix-p "isthmus-" (symbol-name this-original-command))
                                (not (eq this-original-command 'isthmus-review-discard)))))))
     (let ((keys (append (this-single-command-raw-keys) nil)))
       (isthmus--take-keys review)
       (isthmus--restore-layout)
       (setq this-command #'ignore
             unread-command-events (append (mapcar (lambda (key) (cons t key)) keys) unread-command-events))))))

(defun isthmus--restore-layout ()
  "Show the windows as they were before the first review was shown."
  (let ((layout isthmus--layout))
    (setq isthmus--layout nil)
    (when (and layout (frame-live-p (window-configuration-frame layout)))
      (set-window-configuration layout))))

(defun isthmus--forget-layout ()
  "Forget the windows before the first review, if the user has hidden it."
  (unless (seq-some #'isthmus--is-shown isthmus--reviews)
    (setq isthmus--layout nil)))

(defun isthmus--is-shown (review)
  "Return non-nil if a side of REVIEW is in a window."
  (seq-some (lambda (buffer) (and (buffer-live-p buffer) (get-buffer-window buffer t)))
            (list (isthmus-review-current review) (isthmus-review-proposal review))))

(defun isthmus--show-what-is-next ()
  "Show the next review, or the windows as they were, after one was closed."
  (isthmus--when-free
   (lambda ()
     (cond
      (isthmus--reviews
       (isthmus--show (car isthmus--reviews) (+ (float-time) (min isthmus--next-reading isthmus-review-reading))))
      (t (isthmus--restore-layout))))))

(defun isthmus-review ()
  "Show a review that waits; once more: the next one."
  (interactive)
  (unless isthmus--reviews
    (user-error "Isthmus: no review waits"))
  (let ((shown (seq-find #'isthmus--is-in-sight isthmus--reviews)))
    (when shown
      (setq isthmus--reviews (append (delq shown isthmus--reviews) (list shown)))))
  (isthmus--forget-layout)
  (isthmus--show (car isthmus--reviews)))

;; Hiding

(defconst isthmus--count '(:eval (isthmus--counts))
  "The construct that counts reviews and written files in all mode lines.")

(defun isthmus--anything-waits ()
  "Return non-nil if a review waits, or a file that an agent wrote."
  (or isthmus--reviews (> isthmus--changed-files 0)))

(defun isthmus--set-reviews (reviews)
  "Note that REVIEWS are the undecided ones, and count them in all mode lines."
  (setq isthmus--reviews reviews)
  (isthmus--show-count)
  (force-mode-line-update t))

(defun isthmus--show-count ()
  "Add the counts to the mode lines, or remove them when nothing waits.
They are in `global-mode-string', which others may set meanwhile; in front, as
the ends of mode lines are cut off in narrow windows."
  (let* ((value (default-value 'global-mode-string))
         (parts (if (or (null value) (and (consp value) (or (stringp (car value)) (consp (car value)))))
                    value
                  (list value)))) ; a string, or a construct of its own
    (if (not (isthmus--anything-waits))
        (when (member isthmus--count parts)
          (setq-default global-mode-string (remove isthmus--count parts)))
      (unless (member isthmus--count parts)
        (setq-default global-mode-string
                      (append (list "" isthmus--count) (if (equal (car parts) "") (cdr parts) parts)))))))

(defun isthmus--counts ()
  "Return the numbers of undecided reviews and of written files for mode lines.
Nil when nothing waits."
  (when (isthmus--anything-waits)
    (concat (if isthmus--reviews
                (isthmus--mode-line-button (format "Isthmus:%d" (length isthmus--reviews))
                                           "Reviews that wait for you; mouse-1 shows one" #'isthmus-review)
              "Isthmus")
            (when (> isthmus--changed-files 0)
              (isthmus--mode-line-button (format "~%d" isthmus--changed-files)
                                         "Files that agents wrote without a review; mouse-1 lists them"
                                         #'isthmus-changes))
            " ")))

(defun isthmus--mode-line-button (text help command)
  "Return TEXT for mode lines, with HELP and COMMAND for a click on it."
  (propertize text 'face 'warning 'mouse-face 'mode-line-highlight 'help-echo help
              'local-map (make-mode-line-mouse-map 'mouse-1 command)))

(defun isthmus--is-in-sight (review)
  "Return non-nil if the proposal of REVIEW is in a window that can be seen."
  (let ((proposal (isthmus-review-proposal review)))
    (and (buffer-live-p proposal)
         (seq-some (lambda (window)
                     (let ((frame (window-frame window)))
                       (or (not (eq (framep frame) t)) ; a terminal shows one of its frames
                           (eq frame (tty-top-frame (frame-terminal frame))))))
                   (get-buffer-window-list proposal 'no-minibuffer 'visible)))))

(defun isthmus--look-for-hidden (&rest _)
  "Say that a review waits if what just happened hid it."
  (when (and (isthmus--anything-waits) (zerop (minibuffer-depth)))
    (isthmus--show-count)
    (dolist (review (copy-sequence isthmus--reviews))
      (let ((was-in-sight (isthmus-review-is-in-sight review)))
        (setf (isthmus-review-is-in-sight review) (isthmus--is-in-sight review))
        (when (and was-in-sight (not (isthmus-review-is-in-sight review)))
          (setq isthmus--reviews (cons review (delq review isthmus--reviews)))
          (run-at-time 0 nil #'isthmus--say-hidden review)))))) ; after what the command says

(defun isthmus--say-hidden (review)
  "Say that REVIEW waits, and how to see it again, unless it is in sight."
  (isthmus--when-free
   (lambda ()
     (when (and (memq review isthmus--reviews) (not (isthmus--is-in-sight review)))
       (let ((others (1- (length isthmus--reviews))))
         (isthmus--say "a review of %s waits; %s shows it%s"
                       (file-name-nondirectory (isthmus-review-path review))
                       (isthmus--key-of #'isthmus-review)
                       (if (> others 0) (format "; %d more review(s)" others) "")))))))

(defun isthmus--key-of (command)
  "Return the keys of COMMAND for the user, or else its name."
  (let ((key (seq-find (lambda (key) (not (memq (aref key 0) '(menu-bar tool-bar tab-bar))))
                       (where-is-internal command))))
    (if key (key-description key) (format "M-x %s" command))))

(defun isthmus-review-quit (&optional is-discarded)
  "Hide this review, which still waits; reject it if IS-DISCARDED, as by `:q!'.
It takes the place of Evil's command, which might end Emacs."
  (interactive (list (and (isthmus--is-ex) evil-ex-bang)))
  (let ((review (isthmus--here)))
    (if is-discarded
        (isthmus--reject review)
      (isthmus--restore-layout)
      (dolist (buffer (list (isthmus-review-current review) (isthmus-review-proposal review)))
        (when (get-buffer-window buffer t)
          (replace-buffer-in-windows buffer))))))

(defun isthmus-review-discard ()
  "Reject this review, by a key that closes windows elsewhere."
  (interactive)
  (isthmus-review-quit t))

;; Differences

(defun isthmus--proposal-changed (&rest _)
  "Compare again soon, because the user edits the proposal in this buffer."
  (when-let ((review isthmus--review))
    (let ((comparing (isthmus-review-comparing review)))
      (when (timerp comparing)
        (cancel-timer comparing))
      (unless (processp comparing)
        (setf (isthmus-review-comparing review) (run-with-timer 0.3 nil #'isthmus--compare review))))
    (unless (isthmus-review-telling review)
      (setf (isthmus-review-telling review)
            (run-with-timer (if (> (buffer-size) 1000000) 5 1) nil #'isthmus--tell-text review)))))

(defun isthmus--tell-text (review)
  "Send the companion the text in REVIEW, for the case that Emacs crashes."
  (setf (isthmus-review-telling review) nil)
  (when (and (memq review isthmus--reviews) (process-live-p isthmus--process))
    (isthmus--notify "editor/didEditDiff" (isthmus--id-and-text review))))

(defun isthmus--compare (review)
  "Find the differences in REVIEW with the program diff.
It runs beside whatever else Emacs does."
  (when (and (memq review isthmus--reviews) (executable-find "diff"))
    (let* ((tick (buffer-chars-modified-tick (isthmus-review-proposal review)))
           (files (mapcar (lambda (buffer)
                            (let ((file (make-temp-file "isthmus"))
                                  (coding-system-for-write 'utf-8-emacs-unix))
                              (with-current-buffer buffer
                                (save-restriction
                                  (widen)
                                  (write-region nil nil file nil 'silent)))
                              file))
                          (list (isthmus-review-current review) (isthmus-review-proposal review))))
           (output (generate-new-buffer " *isthmus diff*" t)))
      (setf (isthmus-review-comparing review)
            (make-process
             :name "isthmus diff" :noquery t :connection-type 'pipe :buffer output
             :command `("diff" "--text" "--speed-large-files" ,@files)
             :sentinel
             (lambda (process _event)
               (unless (process-live-p process)
                 (mapc #'delete-file files)
                 (setf (isthmus-review-comparing review) nil)
                 (when (memq review isthmus--reviews)
                   (if (eql tick (buffer-chars-modified-tick (isthmus-review-proposal review)))
                       (isthmus--mark review (with-current-buffer output (isthmus--read-hunks)))
                     (isthmus--compare review)))
                 (kill-buffer output))))))))

(defun isthmus--read-hunks ()
  "Return the differences in this buffer, which has the output of diff.
Each is (FIRST AFTER FIRST AFTER): 1-based lines of the old and the new side."
  (goto-char (point-min))
  (let (hunks)
    (while (re-search-forward
            "^\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?\\([acd]\\)\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?$" nil t)
      (cl-flet ((lines (first last only-after)
                  (let ((from (string-to-number (match-string first))))
                    (if (equal (match-string 3) only-after)
                        (list (1+ from) (1+ from))
                      (list from (1+ (if (match-string last) (string-to-number (match-string last)) from)))))))
        (push (append (lines 1 2 "a") (lines 4 5 "d")) hunks)))
    (nreverse hunks)))

(defun isthmus--mark (review hunks)
  "Mark the differences HUNKS in the two sides of REVIEW."
  (require 'smerge-mode)
  (let ((is-first (null (isthmus-review-hunks review)))
        (old (isthmus-review-current review))
        (new (isthmus-review-proposal review))
        (refined 0)
        (old-line 1)
        (new-line 1)
        places)
    (dolist (buffer (list old new))
      (with-current-buffer buffer
        (remove-overlays nil nil 'isthmus t)
        (save-excursion
          (save-restriction
            (widen)
            (goto-char (point-min))
            (setq places nil)
            (let ((line 1)
                  (is-old (eq buffer old)))
              (dolist (hunk hunks)
                (pcase-let ((`(,first ,after ,other-first ,other-after) (if is-old hunk (append (cddr hunk) hunk))))
                  (forward-line (- first line))
                  (let ((start (point)))
                    (forward-line (- after first))
                    (setq line after)
                    (isthmus--mark-lines start (point)
                                         (if is-old 'isthmus-review-removed 'isthmus-review-added)
                                         (if (eq isthmus-review-layout 'unified)
                                             0
                                           (- other-after other-first (- after first))))
                    (push (cons (copy-marker start) (copy-marker (point))) places))))))
          (if (eq buffer old)
              (setq old-line (nreverse places))
            (setq new-line (nreverse places))))))
    (setf (isthmus-review-hunks review) (cl-mapcar #'cons old-line new-line))
    (when (eq isthmus-review-layout 'unified)
      (pcase-dolist (`((,start . ,end) . (,place . ,_)) (isthmus-review-hunks review))
        (isthmus--show-removed review start end place)))
    (pcase-dolist (`((,start . ,end) . (,other-start . ,other-end)) (isthmus-review-hunks review))
      (when (and (< refined isthmus--most-refined) (< start end) (< other-start other-end)
                 (< (- end start) 4000) (< (- other-end other-start) 4000))
        (cl-incf refined)
        (condition-case nil
            (smerge-refine-regions start end other-start other-end nil nil
                                   '((isthmus . t) (face . diff-refine-removed))
                                   '((isthmus . t) (face . diff-refine-added)))
          (error nil))))
    (when (and is-first (isthmus-review-hunks review)
               (= 1 (if-let ((window (get-buffer-window new t)))
                        (window-point window)
                      (with-current-buffer new (point))))) ; the user has not begun
      (isthmus--go-to review (car (isthmus-review-hunks review))))))

(defun isthmus--mark-lines (start end face missing)
  "Mark the lines from START to END with FACE.
Fill up MISSING lines that only the other side has."
  (when (< start end)
    (let ((overlay (make-overlay start end)))
      (overlay-put overlay 'isthmus t)
      (overlay-put overlay 'face face)))
  (when (> missing 0)
    (let ((overlay (make-overlay end end)))
      (overlay-put overlay 'isthmus t)
      (overlay-put overlay 'before-string
                   (propertize (string-join (make-list (min missing 200) "~\n")) 'face 'isthmus-review-gap)))))

(defun isthmus--show-removed (review start end place)
  "Show the lines from START to END on disk at PLACE in the proposal of REVIEW."
  (let* ((lines (with-current-buffer (isthmus-review-current review)
                  (split-string (buffer-substring start end) "\n")))
         (lines (if (equal (car (last lines)) "") (butlast lines) lines))
         (more (- (length lines) isthmus--most-removed))
         (text (mapconcat (lambda (line) (concat line "\n")) (seq-take lines isthmus--most-removed) "")))
    (when lines
      (add-face-text-property 0 (length text) 'isthmus-review-removed t text)
      (with-current-buffer (isthmus-review-proposal review)
        (let ((overlay (make-overlay place place)))
          (overlay-put overlay 'isthmus t)
          (overlay-put overlay 'before-string
                       (if (> more 0)
                           (concat text (propertize (format "~ %d more lines\n" more) 'face 'isthmus-review-gap))
                         text)))))))

(defun isthmus--go-to (review hunk)
  "Put the cursor on HUNK in both sides of REVIEW."
  (cl-loop for (buffer . place) in `((,(isthmus-review-current review) . ,(caar hunk))
                                     (,(isthmus-review-proposal review) . ,(cadr hunk)))
           do (with-current-buffer buffer
                (goto-char place)
                (dolist (window (get-buffer-window-list buffer nil t))
                  (set-window-point window place)
                  (with-selected-window window
                    (recenter (/ (window-body-height) 3)))))))

(defun isthmus--here ()
  "Return the review in whose buffer the user is, or the only one that waits.
Signals `user-error' when there is none."
  (cond
   (isthmus--review)
   ((null isthmus--reviews) (user-error "Isthmus: no review waits"))
   ((cdr isthmus--reviews) (user-error "Isthmus: several reviews wait; M-x isthmus-review shows them"))
   (t (car isthmus--reviews))))

(defun isthmus-review-next (&optional backward)
  "Go to the next change; BACKWARD: to the one before."
  (interactive)
  (let* ((review (isthmus--here))
         (here (point))
         (start (if (eq (current-buffer) (isthmus-review-current review)) #'caar #'cadr))
         (hunks (isthmus-review-hunks review))
         (hunk (if backward
                   (seq-find (lambda (hunk) (< (funcall start hunk) here)) (reverse hunks))
                 (seq-find (lambda (hunk) (> (funcall start hunk) here)) hunks))))
    (if hunk
        (isthmus--go-to review hunk)
      (user-error "Isthmus: no more changes"))))

(defun isthmus-review-previous ()
  "Go to the change before."
  (interactive)
  (isthmus-review-next t))

(defun isthmus-review-reject-hunk ()
  "Put the lines on disk into the hunk at point, or into those in the region.
Accepting the review then accepts the rest; undo brings the hunk back."
  (interactive)
  (isthmus--decide-hunks nil))

(defun isthmus-review-accept-hunk ()
  "Put the proposed lines back into the hunk at point, or into those in the region."
  (interactive)
  (isthmus--decide-hunks t))

(defun isthmus--decide-hunks (accepting)
  "Decide the hunk at point, or the hunks in the region.
If ACCEPTING is non-nil they get the proposed lines, otherwise the old ones."
  (unless (isthmus--is-proposal)
    (user-error "Isthmus: go to the hunk in the proposal"))
  (unless (executable-find "diff")
    (user-error "Isthmus: hunks need the program diff"))
  (let* ((review isthmus--review)
         (source (if accepting
                     (isthmus-review-shown review)
                   (with-current-buffer (isthmus-review-current review)
                     (save-restriction
                       (widen)
                       (buffer-substring-no-properties (point-min) (point-max))))))
         (first (line-number-at-pos (if (use-region-p) (region-beginning) (point)) t))
         (last (if (use-region-p) (line-number-at-pos (max (region-beginning) (1- (region-end))) t) first))
         hunks)
    (when (isthmus--is-fresh review)
      (user-error "Isthmus: this review takes keys in a moment"))
    (save-restriction
      (widen)
      (setq hunks (isthmus--touched-hunks
                   (isthmus--hunks-between source (buffer-substring-no-properties (point-min) (point-max))) first last))
      (unless hunks
        (user-error "Isthmus: this line %s" (if accepting "is as proposed" "has no hunk")))
      (deactivate-mark)
      (atomic-change-group
        (pcase-dolist (`(,from ,after ,start ,end) (reverse hunks)) ; so that the lines before keep their numbers
          (goto-char (point-min))
          (let ((place (progn (forward-line (1- start)) (point))))
            (delete-region place (progn (forward-line (- end start)) (point)))
            (insert (isthmus--lines-of source from after))
            (goto-char place)))))))

(defun isthmus--hunks-between (old new)
  "Return the differences between the texts OLD and NEW.
They have the form of `isthmus--read-hunks'."
  (let ((files (mapcar (lambda (text)
                         (let ((file (make-temp-file "isthmus"))
                               (coding-system-for-write 'utf-8-emacs-unix))
                           (write-region text nil file nil 'silent)
                           file))
                       (list old new))))
    (unwind-protect
        (with-temp-buffer
          (apply #'call-process "diff" nil t nil "--text" "--speed-large-files" files)
          (isthmus--read-hunks))
      (mapc #'delete-file files))))

(defun isthmus--touched-hunks (hunks first last)
  "Return those of HUNKS that the lines FIRST to LAST of the new side touch.
Lines that are missing there are touched by both neighbours, unless a hunk has
the line itself."
  (let ((exact (seq-filter (lambda (hunk)
                             (pcase-let ((`(,_ ,_ ,start ,end) hunk))
                               (and (< start end) (<= start last) (< first end))))
                           hunks))
        (near (seq-filter (lambda (hunk)
                            (pcase-let ((`(,_ ,_ ,start ,end) hunk))
                              (and (= start end) (<= first start) (<= (1- start) last))))
                          hunks)))
    (cond ((null exact) near)
          ((= first last) exact)
          (t (sort (append exact near) (lambda (one other) (< (nth 2 one) (nth 2 other))))))))

(defun isthmus--lines-of (text first after)
  "Return the lines FIRST to AFTER of TEXT, AFTER not included.
Lines count from 1."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (forward-line (1- first))
    (buffer-substring (point) (progn (forward-line (- after first)) (point)))))

(defun isthmus-review-ediff ()
  "Compare this review in Ediff; accept or reject it there or here."
  (interactive)
  (isthmus--start-ediff (isthmus--here)))

(defun isthmus--start-ediff (review)
  "Compare REVIEW in Ediff, in whose control panel its keys decide, too.
After Ediff the review is shown as without it."
  (ediff-buffers
   (isthmus-review-current review) (isthmus-review-proposal review)
   (list (lambda ()
           (let ((map (make-sparse-keymap)))
             (set-keymap-parent map (current-local-map))
             (pcase-dolist (`(,key . ,command) '(("C-c C-c" . isthmus-review-accept)
                                                 ("C-c C-k" . isthmus-review-reject)))
               (define-key map (kbd key)
                 (lambda ()
                   (interactive)
                   (with-current-buffer (isthmus-review-proposal review)
                     (call-interactively command)))))
             (use-local-map map))
           (add-hook 'ediff-after-quit-hook-internal
                     (lambda ()
                       (run-at-time 0 nil (lambda ()
                                            (when (memq review isthmus--reviews)
                                              (let ((isthmus-review-layout nil))
                                                (isthmus--show review))))))
                     nil t)))))

;; Deciding

(defun isthmus--edited-text (review)
  "Return the text in the proposal of REVIEW as it belongs in the file.
Nil means exactly as proposed."
  (with-current-buffer (isthmus-review-proposal review)
    (save-restriction
      (widen)
      (let ((text (buffer-substring-no-properties (point-min) (point-max))))
        (unless (equal text (isthmus-review-shown review))
          (concat (when (isthmus-review-mark review) "\xFEFF")
                  (isthmus--unicode (isthmus--with-newlines text (isthmus-review-coding review)))))))))

(defun isthmus--id-and-text (review)
  "Return the id of REVIEW, and its text when the user changed it."
  (let ((text (isthmus--edited-text review)))
    `((id . ,(isthmus-review-id review)) ,@(when text `((text . ,text))))))

(defun isthmus-review-accept ()
  "Accept the text in this review; the agent writes it to the file."
  (interactive)
  (isthmus--require-user)
  (isthmus--accept))

(defun isthmus--accept ()
  "Accept the review in the current buffer for the user."
  (let* ((review (isthmus--here))
         (said (isthmus--id-and-text review)))
    (when (isthmus--is-fresh review)
      (user-error "Isthmus: this edit came up only now; read it, then %s"
                  (substitute-command-keys "\\<isthmus-review-mode-map>\\[isthmus-review-accept]")))
    (unless (process-live-p isthmus--process)
      (user-error "Isthmus: the companion is gone; your text stays here"))
    (isthmus--notify "editor/didAcceptDiff" said)
    (isthmus--close review 'accepted)
    (when-let ((buffer (isthmus--buffer-of (isthmus-review-path review))))
      (with-current-buffer buffer
        (setq isthmus--conflict nil))) ; so that it is said once more if the buffer stays as it is
    (isthmus--reload-when-written (isthmus-review-path review))
    (isthmus--say "accepted %s" (file-name-nondirectory (isthmus-review-path review)))))

(defun isthmus--accept-later (review)
  "Accept REVIEW if it still waits, from a timer."
  (when (memq review isthmus--reviews)
    (with-current-buffer (isthmus-review-proposal review)
      (condition-case problem
          (isthmus--accept)
        (user-error (message "%s" (error-message-string problem)))))))

(defun isthmus-review-reject ()
  "Reject this review."
  (interactive)
  (isthmus--require-user)
  (isthmus--reject (isthmus--here)))

(defun isthmus--reject (review)
  "Reject REVIEW and close it, together with the text in it."
  (isthmus--notify "editor/didRejectDiff" (isthmus--id-and-text review))
  (isthmus--close review 'rejected)
  (isthmus--say "rejected %s" (file-name-nondirectory (isthmus-review-path review))))

(defun isthmus--is-ex ()
  "Return non-nil during a command that the user typed after Evil's colon."
  (and (fboundp 'evil-ex-p) (evil-ex-p)))

(defun isthmus--ex-file ()
  "Return what the user typed after the name of a command of Evil, or nil."
  (and (isthmus--is-ex) (stringp evil-ex-argument) (not (string-blank-p evil-ex-argument)) evil-ex-argument))

(defun isthmus--runs-by-itself ()
  "Return non-nil inside of a timer, also in commands and keys of its making."
  (let (is-found)
    (mapbacktrace (lambda (_evaluated function &rest _)
                    (when (eq function 'timer-event-handler)
                      (setq is-found t))))
    is-found))

(defun isthmus-review-save ()
  "Accept the proposal in this buffer, in place of a command for saving.
With a name of a file behind Evil's command, write a copy and decide nothing."
  (interactive)
  (cond
   ((isthmus--ex-file)
    (let ((coding-system-for-write (isthmus-review-coding isthmus--review)))
      (evil-write (if evil-ex-range (car evil-ex-range) (point-min))
                  (if evil-ex-range (cadr evil-ex-range) (point-max))
                  'line evil-ex-argument evil-ex-bang)))
   ((and (isthmus--is-ex) evil-ex-range)
    (user-error "Isthmus: a part of a proposal cannot be accepted; :w accepts all of it"))
   ((and (isthmus--is-proposal) (not (isthmus--runs-by-itself)))
    (isthmus-review-accept))
   (t (user-error "%s" (isthmus--keys)))))

(defun isthmus-review-save-all ()
  "Save all files as Evil does, and accept the proposal in this buffer."
  (interactive)
  (evil-write-all (and (isthmus--is-ex) evil-ex-bang))
  (isthmus-review-save))

(defun isthmus-review-save-all-and-leave ()
  "Accept the proposal in this buffer, save all files and leave Emacs."
  (interactive)
  (isthmus-review-save)
  (evil-save-and-quit))

(defun isthmus-review-copy (file)
  "Write the text in this buffer to FILE, which decides nothing."
  (interactive (list (or (isthmus--ex-file) (read-file-name "Write a copy to file: "))))
  (let ((coding-system-for-write (isthmus-review-coding (isthmus--here))))
    (write-region nil nil file nil nil nil (not (and (isthmus--is-ex) evil-ex-bang)))))

(defun isthmus--write-contents ()
  "Accept the proposal in this buffer on the command `save-buffer' of the user.
Timers, hooks and other commands decide nothing, and no file is asked for;
in a command of the user it is said which keys decide."
  (cond
   ((or buffer-file-name (null isthmus--review)) nil) ; the user gave it a file of its own, or nobody waits for it
   ((not (eq (current-buffer) (window-buffer (selected-window)))))
   ((isthmus--runs-by-itself))
   ((and (eq this-command 'save-buffer) (isthmus--is-proposal))
    (isthmus--require-user)
    (run-at-time 0 nil #'isthmus--accept-later isthmus--review)) ; Emacs is not done with the buffer
   (this-command
    (isthmus--say "%s" (isthmus--keys))))
  (and isthmus--review (null buffer-file-name)))

(defun isthmus--keys ()
  "Return a text that explains how to decide a review."
  (concat (substitute-command-keys "\\<isthmus-review-mode-map>\\[isthmus-review-accept] accepts, ")
          (substitute-command-keys "\\<isthmus-review-mode-map>\\[isthmus-review-reject] rejects")))

(defun isthmus--on-close-diff (params _id)
  "Answer editor/closeDiff with PARAMS."
  (let ((review (seq-find (lambda (review) (equal (isthmus-review-id review) (plist-get params :id)))
                          isthmus--reviews)))
    (if (null review)
        :null
      (let ((text (isthmus--edited-text review)))
        (isthmus--close review 'closed)
        (isthmus--reload-when-written (isthmus-review-path review))
        (if text `((text . ,text)) isthmus--empty)))))

(defun isthmus--close (review how)
  "Close the view of REVIEW, which ended in the way of the symbol HOW."
  (isthmus--run-functions 'isthmus-diff-closed-functions (isthmus-review-path review) how)
  (let ((was-shown (isthmus--is-shown review))
        (sides (list (isthmus-review-current review) (isthmus-review-proposal review))))
    (isthmus--set-reviews (delq review isthmus--reviews))
    (when (processp (isthmus-review-comparing review))
      (delete-process (isthmus-review-comparing review)))
    (dolist (buffer sides)
      (when (buffer-live-p buffer)
        (with-current-buffer buffer
          (setq isthmus--review nil)
          (isthmus--end-ediff))))
    (if was-shown
        (isthmus--show-what-is-next)
      (unless isthmus--reviews
        (setq isthmus--layout nil)))
    (dolist (buffer sides)
      (when (buffer-live-p buffer)
        (isthmus--without-questions (kill-buffer buffer))))))

(defun isthmus--end-ediff ()
  "End the sessions of Ediff on the current buffer."
  (dolist (control (bound-and-true-p ediff-this-buffer-ediff-sessions))
    (when (buffer-live-p control)
      (with-current-buffer control
        (condition-case nil
            (ediff-really-quit nil)
          (error nil))))))

(defun isthmus--buffer-killed ()
  "Reject the review, or refuse the question, in this buffer, which is killed."
  (when isthmus--review
    (let* ((review isthmus--review)
           (said (isthmus--id-and-text review)))
      (with-current-buffer (isthmus-review-current review) (setq isthmus--review nil))
      (with-current-buffer (isthmus-review-proposal review) (setq isthmus--review nil))
      (run-at-time 0 nil (lambda ()
                           (isthmus--close review 'rejected)
                           (isthmus--say "rejected %s" (file-name-nondirectory (isthmus-review-path review)))))
      (isthmus--notify "editor/didRejectDiff" said)
      (isthmus--set-reviews (delq review isthmus--reviews))))
  (when isthmus--question
    (isthmus--question-closed))
  (isthmus--changed))

(defun isthmus--keep-reviews ()
  "Close the reviews, for which no agent waits any more.
Text that the user edited stays in its buffer."
  (dolist (review isthmus--reviews)
    (when (isthmus--edited-text review)
      (with-current-buffer (isthmus-review-proposal review)
        (rename-buffer (generate-new-buffer-name
                        (format "*kept: %s*" (isthmus--visible (file-name-nondirectory (isthmus-review-path review))))))
        (setq isthmus--review nil
              buffer-offer-save t
              header-line-format " Nobody waits for this any more; C-x C-w keeps your text")
        (isthmus-review-mode -1)
        (isthmus--say "your text is kept in the buffer %s" (buffer-name)))
      (setf (isthmus-review-proposal review) nil))
    (isthmus--close review 'closed)))

(defun isthmus--reload-when-written (path &optional looks)
  "Read PATH again after the agent has written it.
The agent takes its time for that; LOOKS is the number of tries so far."
  (let ((buffer (isthmus--buffer-of path))
        (looks (or looks 0)))
    (when buffer
      (if (and isthmus-reload-files (not (buffer-modified-p buffer)))
          (isthmus--read-again buffer)
        (isthmus--note-conflict buffer)))
    (when (< looks 150)
      (run-at-time 0.2 nil #'isthmus--reload-when-written path (1+ looks)))))

;;;; Files that agents wrote without a review

(defvar isthmus--changes-heard-at nil "When the companion told last that something was written, as `float-time'.")
(defvar isthmus--changes-timer nil "Looks whether agents have paused; nil: there is nothing to tell.")
(defvar isthmus--changes-told-at 0 "Time of the last write that the user was told of, by the companion's clock.")
(defvar isthmus-changes-changed-functions nil
  "Functions to call when an agent wrote, or the user decided; without arguments.")

(defun isthmus--ask-changes (command params callback)
  "Send COMMAND of the review after the fact, with PARAMS, an alist.
CALLBACK gets the result and the text of the error, one of them nil."
  (isthmus--request "companion/written" `((command . ,command) (params . ,(or params isthmus--empty)))
                    (lambda (result problem)
                      (funcall callback result (and problem (plist-get problem :message))))))

(defun isthmus--set-changed-files (number)
  "Note that NUMBER files wait for the user, and count them in all mode lines."
  (setq isthmus--changed-files number)
  (isthmus--show-count)
  (force-mode-line-update t))

(defun isthmus--on-changes (params _id)
  "Count what agents wrote, as PARAMS say, and tell of it when they pause."
  (isthmus--set-changed-files (or (plist-get params :files) 0))
  (setq isthmus--changes-heard-at (float-time))
  (when (and isthmus-changes-quiet (> isthmus--changed-files 0) (null isthmus--changes-timer))
    (setq isthmus--changes-timer (run-at-time isthmus-changes-quiet nil #'isthmus--look-for-pause)))
  (run-hooks 'isthmus-changes-changed-functions))

(defun isthmus--look-for-pause ()
  "Tell the user what agents wrote, if they have paused; else look again later."
  (setq isthmus--changes-timer nil)
  (when (and isthmus--greeted isthmus-changes-quiet (> isthmus--changed-files 0))
    (let ((rest (- (+ isthmus--changes-heard-at isthmus-changes-quiet) (float-time))))
      (if (> rest 0)
          (setq isthmus--changes-timer (run-at-time rest nil #'isthmus--look-for-pause))
        (isthmus--ask-changes "written" nil (lambda (result _problem) (isthmus--tell-changes result)))))))

(defun isthmus--tell-changes (listing)
  "Tell the user what is new in LISTING."
  (let* ((turns (seq-filter (lambda (turn) (> (plist-get turn :last_at) isthmus--changes-told-at))
                            (plist-get listing :turns)))
         (files (delete-dups (mapcan (lambda (turn)
                                       (mapcar (lambda (file) (plist-get file :path))
                                               (seq-filter (lambda (file) (> (plist-get file :written) 0))
                                                           (plist-get turn :files))))
                                     turns)))
         (agents (delete-dups (mapcan (lambda (turn) (copy-sequence (plist-get turn :agents))) turns))))
    (when files
      (setq isthmus--changes-told-at (apply #'max (mapcar (lambda (turn) (plist-get turn :last_at)) turns)))
      (isthmus--when-free
       (lambda ()
         (isthmus--say "%s wrote %s; %s shows %s"
                       (if agents (string-join agents ", ") "an agent")
                       (if (cdr files)
                           (format "%d files" (length files))
                         (file-name-nondirectory (car files)))
                       (isthmus--key-of #'isthmus-changes)
                       (if (cdr files) "them" "it")))))))

;;;; Keys and menu

(defconst isthmus--agent-commands
  '(isthmus-agent-start isthmus-agent-toggle isthmus-agent-focus isthmus-agent-stop
    isthmus-send-prompt isthmus-send-region isthmus-insert-mention)
  "Commands of the file isthmus-agent.el, which is loaded with the first of them.")

(defconst isthmus--changes-commands
  '(isthmus-changes isthmus-changes-file isthmus-changes-keep isthmus-changes-undo isthmus-changes-redo)
  "Commands of the file isthmus-changes.el, which is loaded with the first of them.")

(let ((folder (file-name-directory (or load-file-name buffer-file-name "./"))))
  (pcase-dolist (`(,name . ,commands) `(("isthmus-agent" . ,isthmus--agent-commands)
                                        ("isthmus-changes" . ,isthmus--changes-commands)))
    (dolist (command commands)
      (autoload command (expand-file-name name folder) nil t))))

(defvar isthmus-command-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,key . ,command)
                   '(("a" . isthmus-agent-start) ("t" . isthmus-agent-toggle) ("o" . isthmus-agent-focus)
                     ("k" . isthmus-agent-stop) ("p" . isthmus-send-prompt) ("r" . isthmus-send-region)
                     ("@" . isthmus-insert-mention) ("m" . isthmus-mention) ("v" . isthmus-review)
                     ("c" . isthmus-changes) ("f" . isthmus-changes-file)
                     ("?" . isthmus-answer) ("s" . isthmus-status) ("l" . isthmus-show-log)))
      (define-key map (kbd key) command))
    map)
  "Commands of Isthmus: bind this keymap to a prefix of your choice.")
(fset 'isthmus-command-map isthmus-command-map) ; `global-set-key' takes the quoted symbol, too

(easy-menu-define isthmus-menu isthmus-mode-map
  "Menu of Isthmus."
  '("Isthmus"
    ["Start an agent" isthmus-agent-start]
    ["Show or hide its terminal" isthmus-agent-toggle]
    ["Go to its terminal" isthmus-agent-focus]
    ["End it" isthmus-agent-stop]
    "---"
    ["Send a prompt..." isthmus-send-prompt]
    ["Send the region" isthmus-send-region :active (use-region-p)]
    ["Mention this file in its prompt" isthmus-insert-mention :active buffer-file-name]
    "---"
    ["Next review" isthmus-review :active isthmus--reviews]
    ["What agents wrote" isthmus-changes :active isthmus--ready]
    ["What agents wrote in this file" isthmus-changes-file :active (and isthmus--ready buffer-file-name)]
    ["Take back the last undo" isthmus-changes-redo :active isthmus--ready]
    ["Answer a question..." isthmus-answer :active isthmus--questions]
    "---"
    ["Status" isthmus-status]
    ["Log" isthmus-show-log]
    ["Options" (customize-group 'isthmus)]
    ["Stop the companion" isthmus-stop]))

;;;; Evil

(with-eval-after-load 'evil
  (dolist (command '(isthmus-review-save isthmus-review-save-all isthmus-review-save-all-and-leave isthmus-review-copy
                     isthmus-review-quit))
    (evil-add-command-properties command :ex-bang t :ex-arg 'file :repeat nil :move-point nil))
  (dolist (state '(normal motion))
    (evil-define-minor-mode-key state 'isthmus-review-mode "ZQ" #'isthmus-review-discard)))

(provide 'isthmus)
;;; isthmus.el ends here
